CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text,
	`person_id` text,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`prefix` text NOT NULL,
	`last4` text NOT NULL,
	`scopes` text NOT NULL,
	`requests_per_minute` integer,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`revoked_at` integer,
	`rotated_to` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);
--> statement-breakpoint
CREATE INDEX `api_keys_by_time` ON `api_keys` (`org_id`,`created_at`,`id`);
--> statement-breakpoint
CREATE INDEX `api_keys_by_person` ON `api_keys` (`org_id`,`person_id`);
--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`limits` text NOT NULL,
	`allowed_hosts` text,
	`created_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`name` text,
	`retention` text NOT NULL,
	`created_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE INDEX `projects_by_time` ON `projects` (`org_id`,`created_at`,`id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_name` ON `projects` (`org_id`,`name`);
--> statement-breakpoint
CREATE TABLE `notes` (`body` text NOT NULL);
