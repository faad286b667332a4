/** `npm run bench:cost`: prints the tables of docs/cost.md, and the one of docs/billing.md. */
import { costTables } from "./bill.ts";
import { marginTable } from "./margin.ts";

process.stdout.write(`${costTables()}\n\n${marginTable()}\n`);
