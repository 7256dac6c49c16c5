-- Leaves one small database, so that a sample is small. Nothing of this is replayed.
UPDATE pg_database SET datistemplate = false;
DROP DATABASE template0;
DROP DATABASE template1;
DROP SCHEMA information_schema CASCADE;
DELETE FROM pg_description;
DELETE FROM pg_collation WHERE collname NOT IN ('default', 'C', 'POSIX', 'ucs_basic');
VACUUM FULL pg_description;
VACUUM FULL pg_collation;
VACUUM FULL pg_rewrite;
VACUUM FULL pg_attribute;
CHECKPOINT;
