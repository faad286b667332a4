CREATE TABLE `totals` (
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`kind`, `name`)
);
--> statement-breakpoint
CREATE INDEX `runs_by_end` ON `runs` (`finished_at`);--> statement-breakpoint
INSERT INTO `totals` (`kind`, `name`, `n`)
SELECT `kind`, `name`, sum(`n`) FROM (
    SELECT 'runs' AS `kind`, `status` AS `name`, 1 AS `n` FROM `runs` WHERE `finished_at` IS NOT NULL
    UNION ALL SELECT 'dead_letters', '', `dead_letters` FROM `runs` WHERE `finished_at` IS NOT NULL
    UNION ALL SELECT 'scored', '', `counts` ->> '$.scored' FROM `runs` WHERE `finished_at` IS NOT NULL
    UNION ALL SELECT o.`key`, r.`key`, r.`value`
      FROM `runs`, json_each(`runs`.`counts`) o, json_each(o.`value`) r
      WHERE `finished_at` IS NOT NULL AND o.`type` = 'object'
  ) WHERE `n` > 0 GROUP BY `kind`, `name`;
--> statement-breakpoint
CREATE TRIGGER `runs_ended` AFTER UPDATE OF `status`, `counts`, `dead_letters`, `finished_at` ON `runs`
WHEN new.`finished_at` IS NOT NULL AND (
  old.`finished_at` IS NOT new.`finished_at` OR old.`status` IS NOT new.`status`
  OR old.`counts` IS NOT new.`counts` OR old.`dead_letters` IS NOT new.`dead_letters`
)
BEGIN
  INSERT INTO `totals` (`kind`, `name`, `n`)
  SELECT `kind`, `name`, `n` FROM (
    SELECT 'runs' AS `kind`, new.`status` AS `name`, old.`finished_at` IS NULL AS `n`
    UNION ALL SELECT 'dead_letters', '', new.`dead_letters`
    UNION ALL SELECT 'scored', '', new.`counts` ->> '$.scored'
    UNION ALL SELECT o.`key`, r.`key`, r.`value` FROM json_each(new.`counts`) o, json_each(o.`value`) r
      WHERE o.`type` = 'object'
  ) WHERE `n` > 0
  ON CONFLICT (`kind`, `name`) DO UPDATE SET `n` = `n` + excluded.`n`;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_ended_before` AFTER UPDATE OF `status`, `counts`, `dead_letters`, `finished_at` ON `runs`
WHEN old.`finished_at` IS NOT NULL AND (
  old.`finished_at` IS NOT new.`finished_at` OR old.`status` IS NOT new.`status`
  OR old.`counts` IS NOT new.`counts` OR old.`dead_letters` IS NOT new.`dead_letters`
)
BEGIN
  INSERT INTO `totals` (`kind`, `name`, `n`)
  SELECT `kind`, `name`, -`n` FROM (
    SELECT 'dead_letters' AS `kind`, '' AS `name`, old.`dead_letters` AS `n`
    UNION ALL SELECT 'scored', '', old.`counts` ->> '$.scored'
    UNION ALL SELECT o.`key`, r.`key`, r.`value` FROM json_each(old.`counts`) o, json_each(o.`value`) r
      WHERE o.`type` = 'object'
  ) WHERE `n` > 0
  ON CONFLICT (`kind`, `name`) DO UPDATE SET `n` = `n` + excluded.`n`;
END;
--> statement-breakpoint
CREATE TRIGGER `runs_deleted` AFTER DELETE ON `runs`
WHEN old.`finished_at` IS NULL
BEGIN
  INSERT INTO `totals` (`kind`, `name`, `n`)
  SELECT `kind`, `name`, `n` FROM (
    SELECT 'runs' AS `kind`, 'cancelled' AS `name`, 1 AS `n`
    UNION ALL SELECT 'dead_letters', '', old.`dead_letters`
    UNION ALL SELECT 'scored', '', old.`counts` ->> '$.scored'
    UNION ALL SELECT o.`key`, r.`key`, r.`value` FROM json_each(old.`counts`) o, json_each(o.`value`) r
      WHERE o.`type` = 'object'
  ) WHERE `n` > 0
  ON CONFLICT (`kind`, `name`) DO UPDATE SET `n` = `n` + excluded.`n`;
END;
