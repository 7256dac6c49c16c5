\set id random(1, 60)
BEGIN;
SELECT value FROM parent WHERE id = :id FOR KEY SHARE;
SAVEPOINT a;
UPDATE parent SET value = value - 1 WHERE id = :id;
ROLLBACK;
