\set id random(1, 60)
BEGIN;
SELECT value FROM parent WHERE id = :id FOR KEY SHARE;
INSERT INTO child (parent) VALUES (:id);
SELECT value FROM parent WHERE id = :id FOR SHARE;
COMMIT;
