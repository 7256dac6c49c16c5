-- An old snapshot locks a row that has been updated since: the lock goes along the chain.
\set id random(1, 5)
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT value, pg_sleep(0.001) FROM chain WHERE id = :id FOR KEY SHARE;
SELECT value FROM chain WHERE id = :id FOR KEY SHARE;
COMMIT;
