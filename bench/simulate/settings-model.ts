/** What an isolate keeps of the settings of organisations, by the times of src/kernel/kit/settings-cache.ts. */
import { SETTINGS_AGE_MS, SETTINGS_RENEWED_MS } from "../../src/kernel/kit/caches.ts";
import type { Agenda } from "./agenda.ts";
import { COSTS } from "./policies.ts";
import type { Traffic } from "./traffic.ts";

/** An organisation, with the object that has the version of its settings. */
export interface Versioned {
  askVersion(count: number): void;
}

export class SettingsModel {
  readonly #agenda: Agenda;
  readonly #traffic: Traffic;
  /** By organisation. */
  readonly #kept = new Map<Versioned, { readonly readAt: number; readonly currentAt: number }>();

  constructor(agenda: Agenda, traffic: Traffic) {
    this.#agenda = agenda;
    this.#traffic = traffic;
  }

  /** A call needs the settings of its organisation. Nobody changes them. */
  use(organization: Versioned): void {
    const { now } = this.#agenda;
    const kept = this.#kept.get(organization);
    if (kept !== undefined && now - kept.currentAt < SETTINGS_RENEWED_MS) return;
    organization.askVersion(COSTS.isolate.version_requests);
    const readAt = kept !== undefined && now - kept.readAt < SETTINGS_AGE_MS ? kept.readAt : now;
    if (readAt === now) this.#traffic.count("d1 read: settings for calls", now, COSTS.isolate.endpoint.length);
    this.#kept.set(organization, { readAt, currentAt: now });
  }
}
