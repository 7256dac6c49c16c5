-- Prepared transactions, finished and left open.
UPDATE parent SET value = value + 1;
COMMIT PREPARED 'early_committed';
BEGIN; INSERT INTO parent VALUES (103, 1); PREPARE TRANSACTION 'undone';
ROLLBACK PREPARED 'undone';
BEGIN;
SELECT value FROM parent WHERE id < 5 FOR SHARE;
SAVEPOINT s; INSERT INTO child (parent) VALUES (5);
SAVEPOINT t; INSERT INTO child (parent) VALUES (6);
PREPARE TRANSACTION 'left_open';
UPDATE parent SET value = 9 WHERE id = 10;
