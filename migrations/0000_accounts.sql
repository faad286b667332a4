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
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);--> statement-breakpoint
CREATE INDEX `api_keys_by_time` ON `api_keys` (`org_id`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `api_keys_by_person` ON `api_keys` (`org_id`,`person_id`);--> statement-breakpoint
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
CREATE INDEX `datasets_stored` ON `datasets` (`org_id`,`bytes`);--> statement-breakpoint
CREATE INDEX `datasets_by_time` ON `datasets` (`org_id`,`project_id`,`created_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `datasets_name` ON `datasets` (`org_id`,`project_id`,`name`);--> statement-breakpoint
CREATE TABLE `deletions` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text,
	`kind` text NOT NULL,
	`target_id` text NOT NULL,
	`state` text NOT NULL,
	`counts` text NOT NULL,
	`requested_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`finished_at` integer
);
--> statement-breakpoint
CREATE INDEX `deletions_by_time` ON `deletions` (`org_id`,`created_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `deletions_target` ON `deletions` (`org_id`,`kind`,`target_id`);--> statement-breakpoint
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
CREATE INDEX `idempotency_keys_by_time` ON `idempotency_keys` (`org_id`,`project_id`,`created_at`);--> statement-breakpoint
CREATE TABLE `invitations` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`hash` text NOT NULL,
	`invited_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`accepted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invitations_hash_unique` ON `invitations` (`hash`);--> statement-breakpoint
CREATE INDEX `invitations_by_time` ON `invitations` (`org_id`,`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `judge_verdicts` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`key` text NOT NULL,
	`verdict` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `project_id`, `key`)
);
--> statement-breakpoint
CREATE INDEX `judge_verdicts_by_time` ON `judge_verdicts` (`org_id`,`project_id`,`created_at`);--> statement-breakpoint
CREATE TABLE `members` (
	`org_id` text NOT NULL,
	`person_id` text NOT NULL,
	`role` text NOT NULL,
	`name` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `person_id`)
);
--> statement-breakpoint
CREATE INDEX `members_by_person` ON `members` (`person_id`);--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`limits` text NOT NULL,
	`allowed_hosts` text,
	`created_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE TABLE `people` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `people_email_unique` ON `people` (`email`);--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`name` text,
	`retention` text NOT NULL,
	`created_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE INDEX `projects_by_time` ON `projects` (`org_id`,`created_at`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `projects_name` ON `projects` (`org_id`,`name`);--> statement-breakpoint
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
	`sealed_push_secret` text,
	`counts` text,
	`report` text,
	`error` text,
	`metadata` text NOT NULL,
	`created_at` integer NOT NULL,
	`finished_at` integer,
	`stored_bytes` integer DEFAULT 0 NOT NULL,
	`deleted_at` integer,
	`dataset_id` text,
	`dead_letters` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `runs_by_dataset` ON `runs` (`org_id`,`project_id`,`dataset_id`);--> statement-breakpoint
CREATE INDEX `runs_by_endpoint` ON `runs` (`org_id`,`project_id`,`endpoint_id`);--> statement-breakpoint
CREATE INDEX `runs_by_time` ON `runs` (`org_id`,`project_id`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `runs_of_organization` ON `runs` (`org_id`,`status`);--> statement-breakpoint
CREATE INDEX `runs_stored` ON `runs` (`org_id`,`stored_bytes`);--> statement-breakpoint
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