ALTER TABLE `api_keys` ADD `maker_id` text;--> statement-breakpoint
WITH RECURSIVE `made` (`id`, `org_id`, `maker_id`) AS (
	SELECT `id`, `org_id`, `created_by` FROM `api_keys` WHERE `person_id` IS NULL AND substr(`created_by`, 1, 4) = 'per_'
	UNION
	SELECT `k`.`id`, `k`.`org_id`, `p`.`person_id` FROM `api_keys` `k`
		JOIN `api_keys` `p` ON `p`.`id` = `k`.`created_by` AND `p`.`org_id` = `k`.`org_id`
		WHERE `k`.`person_id` IS NULL AND `p`.`person_id` IS NOT NULL
	UNION
	SELECT `k`.`id`, `k`.`org_id`, `made`.`maker_id` FROM `made`
		JOIN `api_keys` `k` ON `k`.`created_by` = `made`.`id` AND `k`.`org_id` = `made`.`org_id`
		WHERE `k`.`person_id` IS NULL
)
UPDATE `api_keys` SET `maker_id` = (SELECT `made`.`maker_id` FROM `made` WHERE `made`.`id` = `api_keys`.`id`)
	WHERE `id` IN (SELECT `id` FROM `made`);
