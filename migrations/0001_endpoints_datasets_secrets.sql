CREATE TABLE `datasets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text,
	`rows` integer NOT NULL,
	`bytes` integer NOT NULL,
	`sha256` text NOT NULL,
	`environment` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `datasets_by_time` ON `datasets` (`org_id`,`project_id`,`created_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `datasets_name` ON `datasets` (`org_id`,`project_id`,`name`);--> statement-breakpoint
CREATE TABLE `idempotency_keys` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`operation` text NOT NULL,
	`key` text NOT NULL,
	`request_hash` text NOT NULL,
	`resource_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `project_id`, `operation`, `key`)
);
--> statement-breakpoint
CREATE TABLE `secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text NOT NULL,
	`sealed_value` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `secrets_name` ON `secrets` (`org_id`,`project_id`,`name`);--> statement-breakpoint
ALTER TABLE `endpoints` ADD `name` text;--> statement-breakpoint
ALTER TABLE `endpoints` ADD `max_concurrent` integer;--> statement-breakpoint
ALTER TABLE `endpoints` ADD `rpm` integer;--> statement-breakpoint
ALTER TABLE `endpoints` ADD `prices` text;--> statement-breakpoint
ALTER TABLE `endpoints` ADD `capabilities` text;--> statement-breakpoint
ALTER TABLE `endpoints` ADD `updated_at` integer;--> statement-breakpoint
ALTER TABLE `endpoints` ADD `deleted_at` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `endpoints_name` ON `endpoints` (`org_id`,`project_id`,`name`);--> statement-breakpoint
ALTER TABLE `runs` ADD `dataset_id` text;--> statement-breakpoint
CREATE INDEX `runs_by_dataset` ON `runs` (`org_id`,`project_id`,`dataset_id`);--> statement-breakpoint
CREATE INDEX `runs_by_endpoint` ON `runs` (`org_id`,`project_id`,`endpoint_id`);