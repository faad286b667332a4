DROP TABLE `ledger_copies`;--> statement-breakpoint
DROP TABLE `ledger_months`;