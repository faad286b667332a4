CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`hash` text NOT NULL,
	`last4` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);--> statement-breakpoint
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
CREATE TABLE `endpoints` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`base_url` text NOT NULL,
	`sealed_key` text,
	`api_key_last4` text,
	`created_at` integer NOT NULL,
	`name` text,
	`max_concurrent` integer,
	`rpm` integer,
	`prices` text,
	`capabilities` text,
	`updated_at` integer,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `endpoints_name` ON `endpoints` (`org_id`,`project_id`,`name`);--> statement-breakpoint
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
CREATE TABLE `judge_verdicts` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`key` text NOT NULL,
	`verdict` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `key`)
);
--> statement-breakpoint
CREATE TABLE `runs` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text,
	`status` text NOT NULL,
	`environment_id` text NOT NULL,
	`environment_version` text NOT NULL,
	`endpoint_id` text NOT NULL,
	`spec` text NOT NULL,
	`idempotency_key` text,
	`request_hash` text,
	`counts` text,
	`report` text,
	`error` text,
	`metadata` text NOT NULL,
	`created_at` integer NOT NULL,
	`finished_at` integer,
	`dataset_id` text,
	`dead_letters` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `runs_by_dataset` ON `runs` (`org_id`,`project_id`,`dataset_id`);--> statement-breakpoint
CREATE INDEX `runs_by_endpoint` ON `runs` (`org_id`,`project_id`,`endpoint_id`);--> statement-breakpoint
CREATE INDEX `runs_by_time` ON `runs` (`org_id`,`project_id`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `runs_by_status` ON `runs` (`org_id`,`project_id`,`status`,`created_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `runs_idempotency_key` ON `runs` (`org_id`,`project_id`,`idempotency_key`);--> statement-breakpoint
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
CREATE TABLE `trainer_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`run_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer
);
--> statement-breakpoint
CREATE INDEX `trainer_tokens_by_run` ON `trainer_tokens` (`org_id`,`project_id`,`run_id`);