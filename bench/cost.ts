/** `npm run bench:cost`: prints the tables of docs/cost.md. */
import { costTables } from "./bill.ts";

process.stdout.write(`${costTables()}\n`);
