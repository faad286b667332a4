CREATE TABLE `fleets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text,
	`update` text NOT NULL,
	`prices` text,
	`location_hint` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `fleets_name` ON `fleets` (`org_id`,`project_id`,`name`);--> statement-breakpoint
CREATE TABLE `replicas` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`fleet_id` text NOT NULL,
	`name` text NOT NULL,
	`base_url` text NOT NULL,
	`control_url` text,
	`sealed_key` text,
	`api_key_last4` text,
	`sealed_control_key` text,
	`max_concurrent` integer NOT NULL,
	`draining` integer NOT NULL,
	`capabilities` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `replicas_name` ON `replicas` (`org_id`,`project_id`,`fleet_id`,`name`);--> statement-breakpoint
CREATE TABLE `triggers` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text NOT NULL,
	`scheme` text NOT NULL,
	`sealed_secret` text NOT NULL,
	`run` text NOT NULL,
	`map` text NOT NULL,
	`when` text NOT NULL,
	`concurrency` text NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`disabled_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `triggers_name` ON `triggers` (`org_id`,`project_id`,`name`);--> statement-breakpoint
CREATE TABLE `webhook_endpoints` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`url` text NOT NULL,
	`description` text NOT NULL,
	`events` text,
	`disabled_at` integer,
	`disabled_reason` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhook_endpoints_by_time` ON `webhook_endpoints` (`org_id`,`project_id`,`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `webhook_secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`webhook_id` text NOT NULL,
	`sealed_secret` text NOT NULL,
	`expires_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhook_secrets_by_endpoint` ON `webhook_secrets` (`org_id`,`project_id`,`webhook_id`);