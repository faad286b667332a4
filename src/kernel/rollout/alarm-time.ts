/** How long one alarm of an object plays rollouts. The platform kills an alarm handler after 15 minutes. */
export const ALARM_MS = 14 * 60_000;
