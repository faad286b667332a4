DROP INDEX `people_email_unique`;--> statement-breakpoint
ALTER TABLE `people` ADD `proven_at` integer;--> statement-breakpoint
UPDATE `people` SET `proven_at` = `created_at`;--> statement-breakpoint
CREATE UNIQUE INDEX `people_proven_email` ON `people` (`email`) WHERE "people"."proven_at" is not null;