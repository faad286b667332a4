CREATE TABLE `reviews` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`run_id` text NOT NULL,
	`rollout_id` text NOT NULL,
	`created_by` text NOT NULL,
	`mark` text,
	`note` text,
	`values` text NOT NULL,
	`why` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `reviews_by_rollout` ON `reviews` (`org_id`,`project_id`,`rollout_id`,`created_by`);--> statement-breakpoint
CREATE INDEX `reviews_by_run` ON `reviews` (`org_id`,`project_id`,`run_id`,`created_at`);