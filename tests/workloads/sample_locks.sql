-- Locks of every strength on one row, with a savepoint that goes either way.
\set id random(1, 12)
\set fate random(1, 3)
BEGIN;
SELECT value FROM parent WHERE id = :id FOR KEY SHARE;
INSERT INTO child (parent) VALUES (:id);
SAVEPOINT a;
SELECT value FROM parent WHERE id = :id FOR NO KEY UPDATE SKIP LOCKED;
\set undo :fate = 1
\if :undo
ROLLBACK TO a;
\endif
COMMIT;
