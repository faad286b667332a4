CREATE TABLE `hub_environments` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text,
	`name` text NOT NULL,
	`key` text NOT NULL,
	`visibility` text NOT NULL,
	`description` text,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hub_environments_key` ON `hub_environments` (`key`);--> statement-breakpoint
CREATE INDEX `hub_environments_by_org` ON `hub_environments` (`org_id`,`key`);--> statement-breakpoint
CREATE INDEX `hub_environments_by_visibility` ON `hub_environments` (`visibility`,`key`);--> statement-breakpoint
CREATE TABLE `hub_grants` (
	`org_id` text NOT NULL,
	`project_id` text NOT NULL,
	`environment_id` text NOT NULL,
	`needs` text NOT NULL,
	`granted_by` text NOT NULL,
	`granted_at` integer NOT NULL,
	PRIMARY KEY(`org_id`, `project_id`, `environment_id`)
);
--> statement-breakpoint
CREATE TABLE `hub_owners` (
	`org_id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`key` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hub_owners_key` ON `hub_owners` (`key`);--> statement-breakpoint
CREATE TABLE `hub_tags` (
	`org_id` text NOT NULL,
	`project_id` text,
	`environment_id` text NOT NULL,
	`tag` text NOT NULL,
	`version` text NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`environment_id`, `tag`)
);
--> statement-breakpoint
CREATE TABLE `hub_versions` (
	`id` text PRIMARY KEY NOT NULL,
	`org_id` text NOT NULL,
	`project_id` text,
	`environment_id` text NOT NULL,
	`version` text NOT NULL,
	`digest` text NOT NULL,
	`description` text,
	`about` text NOT NULL,
	`validation` text NOT NULL,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`yanked_at` integer,
	`yank_reason` text,
	`deprecated` text,
	`taken_down_at` integer,
	`take_down_reason` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `hub_versions_version` ON `hub_versions` (`environment_id`,`version`);