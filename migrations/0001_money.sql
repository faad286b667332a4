CREATE TABLE `budgets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`target_kind` text NOT NULL,
	`target_id` text NOT NULL,
	`limit_micros` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `budgets_target` ON `budgets` (`org_id`,`target_kind`,`target_id`);--> statement-breakpoint
CREATE TABLE `ledger_copies` (
	`org_id` text PRIMARY KEY NOT NULL,
	`balance_micros` integer NOT NULL,
	`reserved_micros` integer NOT NULL,
	`last_entry` integer NOT NULL,
	`copied_at` integer NOT NULL,
	`behind_since` integer
);
--> statement-breakpoint
CREATE TABLE `ledger_months` (
	`org_id` text NOT NULL,
	`month` text NOT NULL,
	`first_entry` integer NOT NULL,
	`last_entry` integer NOT NULL,
	`opening_micros` integer NOT NULL,
	`closing_micros` integer NOT NULL,
	`accounts` text NOT NULL,
	`sha256` text NOT NULL,
	`closed_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `month`)
);
--> statement-breakpoint
CREATE TABLE `price_lists` (
	`version` text PRIMARY KEY NOT NULL,
	`effective_from` integer NOT NULL,
	`prices` text NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `usage_hours` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`hour` integer NOT NULL,
	`payer` text NOT NULL,
	`environment` text NOT NULL,
	`model` text NOT NULL,
	`kind` text NOT NULL,
	`counts` text NOT NULL,
	`lines` text NOT NULL,
	PRIMARY KEY(`org_id`, `project_id`, `hour`, `payer`, `environment`, `model`, `kind`)
);
--> statement-breakpoint
ALTER TABLE `organizations` ADD `billing` text DEFAULT 'off' NOT NULL;--> statement-breakpoint
ALTER TABLE `organizations` ADD `credit_limit_micros` integer;