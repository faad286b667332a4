ALTER TABLE `hub_versions` ADD `stored_bytes` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `hub_versions` ADD `paid_by` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `hub_versions_stored` ON `hub_versions` (`org_id`,`paid_by`,`stored_bytes`);