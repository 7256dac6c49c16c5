-- A catalog that is rewritten while a slot may still decode its older rows.
SELECT pg_create_logical_replication_slot('slot', 'test_decoding');
CREATE TABLE made (a int);
ALTER TABLE made ADD COLUMN b int;
VACUUM FULL pg_class;
VACUUM FULL pg_attribute;
