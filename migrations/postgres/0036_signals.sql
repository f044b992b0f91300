-- Annotations whose mirror, a document of the collection `loupe_document_annotations`, is to be looked at once more. Those that
-- there are already have none yet.
CREATE TABLE annotation_signals (
    annotation_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    noted_at BIGINT NOT NULL
);
CREATE INDEX annotation_signals_noted ON annotation_signals (noted_at, annotation_id);
INSERT INTO annotation_signals (annotation_id, namespace_id, noted_at)
SELECT annotation_id, namespace_id, 0 FROM annotations WHERE valid_to = 9223372036854775807;

-- What is under way to each receiver: one that hangs gets no more meanwhile, and holds up nobody else.
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (webhook_id, channel, claimed_until) WHERE status = 'pending' AND claimed_until > 0;
