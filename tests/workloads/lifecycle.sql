-- The records that a crash image cannot hold behind the checkpoints they force, and those of a
-- server's life: databases by file copy, drops of databases and tablespaces, backups, settings.
SET allow_in_place_tablespaces = on;
CREATE DATABASE filed STRATEGY file_copy;
\c filed
CREATE TABLE inherited (id int PRIMARY KEY, body text);
INSERT INTO inherited SELECT g, md5(g::text) FROM generate_series(1, 2000) g;
\c postgres
SET allow_in_place_tablespaces = on;
CREATE DATABASE copy_of_filed TEMPLATE filed STRATEGY file_copy;
CREATE DATABASE brief STRATEGY wal_log;
DROP DATABASE brief;
ALTER DATABASE copy_of_filed SET TABLESPACE outside;
CREATE TABLESPACE passing LOCATION '';
CREATE TABLE passenger (id int) TABLESPACE passing;
INSERT INTO passenger SELECT generate_series(1, 100);
DROP TABLE passenger;
DROP TABLESPACE passing;
CREATE TABLESPACE moved LOCATION :'moved';
ALTER TABLE elsewhere SET TABLESPACE moved;
ALTER DATABASE copy_of_filed SET TABLESPACE pg_default;
DROP TABLESPACE outside;
SELECT pg_backup_start('label', fast => true);
UPDATE item SET body = 'during backup' WHERE id % 10 = 0;
SELECT lsn FROM pg_backup_stop(false);
SELECT pg_create_restore_point('here');
SELECT pg_switch_wal();
ALTER SYSTEM SET full_page_writes = off;
SELECT pg_reload_conf();
SELECT pg_sleep(0.2);
CHECKPOINT;
UPDATE item SET body = 'without images' WHERE id % 7 = 0;
ALTER SYSTEM SET full_page_writes = on;
SELECT pg_reload_conf();
SELECT pg_sleep(0.2);
CHECKPOINT;
SELECT pg_replication_origin_advance('upstream', '0/123456');
SELECT pg_replication_origin_advance('gone', '0/654321');
SELECT pg_replication_origin_drop('gone');
INSERT INTO item VALUES (1, 'conflict') ON CONFLICT (id) DO UPDATE SET body = 'upsert';
INSERT INTO item VALUES (90001, 'speculative') ON CONFLICT (id) DO NOTHING;
