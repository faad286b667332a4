CREATE TABLE `trainer_tokens` (
	`hash` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`run_id` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer
);
--> statement-breakpoint
CREATE INDEX `trainer_tokens_by_run` ON `trainer_tokens` (`org_id`,`project_id`,`run_id`);--> statement-breakpoint
PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE `__new_judge_verdicts` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`key` text NOT NULL,
	`verdict` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `key`)
);
--> statement-breakpoint
INSERT OR IGNORE INTO `__new_judge_verdicts`("org_id", "project_id", "key", "verdict", "created_at") SELECT "org_id", "project_id", "key", "verdict", "created_at" FROM `judge_verdicts`;--> statement-breakpoint
DROP TABLE `judge_verdicts`;--> statement-breakpoint
ALTER TABLE `__new_judge_verdicts` RENAME TO `judge_verdicts`;--> statement-breakpoint
PRAGMA foreign_keys=ON;--> statement-breakpoint
ALTER TABLE `rollouts` ADD `judge_micros` integer;