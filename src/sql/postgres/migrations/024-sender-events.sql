-- The sender's own name of an event that its source renames, as GitHub's push is new_commit; null where `event` is that name.
ALTER TABLE deliveries ADD COLUMN sender_event TEXT COLLATE "C";
