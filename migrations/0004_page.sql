CREATE TABLE `report_links` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`run_id` text NOT NULL,
	`hash` text NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `report_links_hash_unique` ON `report_links` (`hash`);--> statement-breakpoint
CREATE INDEX `report_links_by_run` ON `report_links` (`org_id`,`project_id`,`run_id`,`created_at`);--> statement-breakpoint
CREATE TABLE `sign_in_codes` (
	`hash` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text,
	`key_id` text,
	`person_id` text,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`session_until` integer
);
--> statement-breakpoint
CREATE INDEX `sign_in_codes_by_time` ON `sign_in_codes` (`org_id`,`created_at`);--> statement-breakpoint
CREATE TABLE `web_sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text,
	`key_id` text,
	`person_id` text,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `web_sessions_hash_unique` ON `web_sessions` (`hash`);--> statement-breakpoint
CREATE INDEX `web_sessions_by_time` ON `web_sessions` (`org_id`,`created_at`,`id`);