/** The wire forms of a model address. */
import { chat } from "./chat.ts";
import type { Form, FormName } from "./form.ts";
import { messages } from "./messages.ts";
import { responses } from "./responses.ts";

export const FORMS: Readonly<Record<FormName, Form>> = { chat, responses, messages };
