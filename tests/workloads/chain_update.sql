\set id random(1, 5)
BEGIN;
UPDATE chain SET value = value + 1 WHERE id = :id;
SELECT pg_sleep(0.001);
COMMIT;
