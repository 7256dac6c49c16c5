-- A GiST index that is not logged needs LSNs all the same, for its splits.
BEGIN;
CREATE TABLE places (id int, place point);
CREATE INDEX places_place ON places USING gist (place);
INSERT INTO places SELECT g, point(g, g) FROM generate_series(1, 3000) g;
COMMIT;
INSERT INTO places SELECT g, point(g, g) FROM generate_series(1, 300) g;
