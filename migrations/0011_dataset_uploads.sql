CREATE TABLE `dataset_uploads` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text,
	`environment` text,
	`environment_args` text NOT NULL,
	`bytes` integer,
	`sha256` text,
	`dataset_id` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `dataset_uploads_by_time` ON `dataset_uploads` (`org_id`,`project_id`,`created_at`,`id`);