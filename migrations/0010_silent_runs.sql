ALTER TABLE `runs` ADD `written_at` integer;--> statement-breakpoint
CREATE INDEX `runs_unfinished` ON `runs` (`id`) WHERE finished_at is null;