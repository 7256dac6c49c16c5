\set id random(1, 60)
BEGIN;
SELECT value FROM parent WHERE id = :id FOR NO KEY UPDATE;
SAVEPOINT a;
UPDATE parent SET value = value + 1 WHERE id = :id;
SAVEPOINT b;
UPDATE parent SET value = value + 1 WHERE id = :id;
ROLLBACK TO b;
SELECT value FROM parent WHERE id = :id FOR UPDATE;
RELEASE a;
COMMIT;
