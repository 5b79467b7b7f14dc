-- Whom to ask where the documents of a collection do not answer: a name, a mail address, a telephone number.

ALTER TABLE collections ADD owner_contact text CHECK (length(owner_contact) BETWEEN 1 AND 200);
