-- What was deleted ends instead of going at once: a sweep finds by this what ended long ago.
CREATE INDEX annotations_ended ON annotations (valid_to);
