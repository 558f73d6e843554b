-- Texts with the same words in any capitals: an ended memory that says them is found among all memories.
CREATE INDEX features_trait ON features (trait, tenant);
