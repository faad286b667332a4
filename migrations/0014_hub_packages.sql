ALTER TABLE `hub_environments` ADD `kind` text DEFAULT 'javascript' NOT NULL;--> statement-breakpoint
ALTER TABLE `hub_versions` ADD `npm` text;--> statement-breakpoint
ALTER TABLE `hub_versions` ADD `wheel` text;