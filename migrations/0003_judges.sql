CREATE TABLE `judge_verdicts` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`key` text NOT NULL,
	`verdict` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `project_id`, `key`)
);
--> statement-breakpoint
ALTER TABLE `rollouts` ADD `judge_calls` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `rollouts` ADD `judge_prompt_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `rollouts` ADD `judge_completion_tokens` integer DEFAULT 0 NOT NULL;