-- rollout.v1: the tables of a lake as DuckDB reads them. Derived by `python -m etl.derive`.

CREATE TABLE rollouts (
    "rollout_id"      VARCHAR NOT NULL,
    "task_id"         VARCHAR,
    "group_id"        VARCHAR,
    "sample_index"    INTEGER,
    "origin"          VARCHAR NOT NULL,
    "adapter"         VARCHAR NOT NULL,
    "conversation_id" VARCHAR,
    "parent_id"       VARCHAR,
    "prompt"          VARCHAR,
    "messages"        STRUCT("role" VARCHAR, "content" VARCHAR, "reasoning_content" VARCHAR, "tool_calls" STRUCT("id" VARCHAR, "type" VARCHAR, "function" STRUCT("name" VARCHAR, "arguments" VARCHAR))[], "tool_call_id" VARCHAR, "name" VARCHAR)[] NOT NULL,
    "message_info"    STRUCT("id" VARCHAR, "at" TIMESTAMP WITH TIME ZONE, "model" VARCHAR, "finish_reason" VARCHAR, "input_tokens" BIGINT, "output_tokens" BIGINT, "inherited" BOOLEAN, "synthetic" BOOLEAN, "parts" VARCHAR, "extra" VARCHAR)[] NOT NULL,
    "prompt_len"      INTEGER NOT NULL,
    "steps"           STRUCT("call_id" VARCHAR, "tool" VARCHAR, "actor" VARCHAR, "arguments" VARCHAR, "message_index" INTEGER, "result_index" INTEGER, "status" VARCHAR, "condition" VARCHAR, "error" VARCHAR, "raw_arguments" VARCHAR, "at" TIMESTAMP WITH TIME ZONE, "duration_ms" DOUBLE)[] NOT NULL,
    "final_text"      VARCHAR,
    "tools"           VARCHAR,
    "status"          VARCHAR NOT NULL,
    "finish_reason"   VARCHAR,
    "error"           VARCHAR,
    "reward"          DOUBLE,
    "rewards"         VARCHAR,
    "judgments"       STRUCT("name" VARCHAR, "kind" VARCHAR, "value" DOUBLE, "label" VARCHAR, "status" VARCHAR, "reason" VARCHAR)[] NOT NULL,
    "scenario"        STRUCT("tool" VARCHAR, "tool_condition" VARCHAR, "world_state" VARCHAR, "stance" VARCHAR, "history" VARCHAR, "rule" VARCHAR, "length" VARCHAR),
    "faults"          VARCHAR,
    "seed"            BIGINT,
    "seeded"          VARCHAR[],
    "model"           VARCHAR,
    "provider"        VARCHAR,
    "policy_version"  VARCHAR,
    "agent"           VARCHAR,
    "started_at"      TIMESTAMP WITH TIME ZONE,
    "ended_at"        TIMESTAMP WITH TIME ZONE,
    "usage"           STRUCT("input_tokens" BIGINT, "output_tokens" BIGINT, "cached_tokens" BIGINT, "cache_write_tokens" BIGINT, "reasoning_tokens" BIGINT, "cost_usd" DOUBLE),
    "token_ids"       INTEGER[],
    "loss_mask"       TINYINT[],
    "logprobs"        FLOAT[],
    "n_turns"         INTEGER NOT NULL,
    "n_steps"         INTEGER NOT NULL,
    "flags"           VARCHAR[] NOT NULL,
    "redactions"      VARCHAR,
    "extra"           VARCHAR,
    "n_records"       INTEGER NOT NULL,
    "content_hash"    VARCHAR NOT NULL,
    "row_hash"        VARCHAR NOT NULL,
    "source_uri"      VARCHAR NOT NULL,
    "source_line"     BIGINT,
    "source_offset"   BIGINT,
    "adapter_version" INTEGER NOT NULL,
    "schema_version"  VARCHAR NOT NULL,
    "batch_id"        VARCHAR NOT NULL,
    "ingested_at"     TIMESTAMP WITH TIME ZONE NOT NULL,
    "source"          VARCHAR NOT NULL,
    "day"             VARCHAR NOT NULL
);
COMMENT ON TABLE rollouts IS 'One row per attempt: what was asked, every call and what came back, what was finally said.';
COMMENT ON COLUMN rollouts."rollout_id" IS '`r_` and 128 bits of BLAKE2b over source, run, key, branch and attempt, from values before redaction.';
COMMENT ON COLUMN rollouts."task_id" IS 'The task this is an attempt at: equal for all attempts, over files and nights.';
COMMENT ON COLUMN rollouts."group_id" IS 'The set of repeats this belongs to, only where the log declares repeats.';
COMMENT ON COLUMN rollouts."sample_index" IS 'Which attempt within the group, from 0.';
COMMENT ON COLUMN rollouts."origin" IS 'traffic (parsed from a log) or simulation (written by the simulator).';
COMMENT ON COLUMN rollouts."adapter" IS 'Which adapter wrote the row.';
COMMENT ON COLUMN rollouts."conversation_id" IS 'The source''s own key of the conversation.';
COMMENT ON COLUMN rollouts."parent_id" IS '`rollout_id` of the row that this sub-agent, branch or continuation came from.';
COMMENT ON COLUMN rollouts."prompt" IS 'The first thing a person asked: never a harness line, a compaction summary or a demonstration.';
COMMENT ON COLUMN rollouts."messages" IS 'The whole transcript in order, system prompt first.';
COMMENT ON COLUMN rollouts."message_info" IS 'Same length as `messages`: ids, times, models, tokens, other content, unmodelled keys.';
COMMENT ON COLUMN rollouts."prompt_len" IS 'Messages before the first turn of the agent that this row owns: `messages[:prompt_len]` is the prompt.';
COMMENT ON COLUMN rollouts."steps" IS 'Every tool call in call order, with the place of its result.';
COMMENT ON COLUMN rollouts."final_text" IS 'Text of the last assistant message of the main thread; empty when it holds only calls, null if none.';
COMMENT ON COLUMN rollouts."tools" IS 'JSON array of the tool definitions offered, OpenAI function form; null when not logged.';
COMMENT ON COLUMN rollouts."status" IS 'How the conversation ended: completed, truncated, aborted, error or unknown.';
COMMENT ON COLUMN rollouts."finish_reason" IS 'Why it ended, in the source''s own word.';
COMMENT ON COLUMN rollouts."error" IS 'The error that ended it.';
COMMENT ON COLUMN rollouts."reward" IS 'The reward as logged, any number; null when nobody scored it, never 0.';
COMMENT ON COLUMN rollouts."rewards" IS 'JSON object of the named components of the reward.';
COMMENT ON COLUMN rollouts."judgments" IS 'Every verdict and measurement on the row.';
COMMENT ON COLUMN rollouts."scenario" IS 'The intended cell of a simulated row.';
COMMENT ON COLUMN rollouts."faults" IS 'Simulation: JSON of the faults that were scheduled. Null for traffic.';
COMMENT ON COLUMN rollouts."seed" IS 'Simulation: the seed of the row. Null for traffic.';
COMMENT ON COLUMN rollouts."seeded" IS 'Simulation: the mistakes planted on purpose, `[]` for a row that behaves. Null for traffic.';
COMMENT ON COLUMN rollouts."model" IS 'The model that acted; where it changed, the last one (each message has its own in `message_info.model`).';
COMMENT ON COLUMN rollouts."provider" IS 'Who served the model.';
COMMENT ON COLUMN rollouts."policy_version" IS 'Version of the policy (checkpoint, prompt, deployment) that acted.';
COMMENT ON COLUMN rollouts."agent" IS 'Name of the agent or harness.';
COMMENT ON COLUMN rollouts."started_at" IS 'When the first message was said.';
COMMENT ON COLUMN rollouts."ended_at" IS 'When the last thing happened.';
COMMENT ON COLUMN rollouts."usage" IS 'Tokens and money of the agent''s own model responses.';
COMMENT ON COLUMN rollouts."token_ids" IS 'Token ids of the whole row, only when logged.';
COMMENT ON COLUMN rollouts."loss_mask" IS '1 where a token was sampled by the policy, only when logged; same length as `token_ids`.';
COMMENT ON COLUMN rollouts."logprobs" IS 'Natural-log probability of each token, only when logged; same length as `token_ids`.';
COMMENT ON COLUMN rollouts."n_turns" IS 'User turns.';
COMMENT ON COLUMN rollouts."n_steps" IS 'Tool calls.';
COMMENT ON COLUMN rollouts."flags" IS 'What a careful reader should know, sorted; `schemas/rollout.v1.md` lists them.';
COMMENT ON COLUMN rollouts."redactions" IS 'JSON object: redaction rule → how often it replaced something; null when nothing was.';
COMMENT ON COLUMN rollouts."extra" IS 'JSON object of every top-level field of the source that no column holds.';
COMMENT ON COLUMN rollouts."n_records" IS 'Source records seen for this row, ignored ones included.';
COMMENT ON COLUMN rollouts."content_hash" IS '128 bits of BLAKE2b over the canonical transcript: exact duplicates share it.';
COMMENT ON COLUMN rollouts."row_hash" IS '128 bits of BLAKE2b over everything the row says, lineage columns and labels given in the lake aside.';
COMMENT ON COLUMN rollouts."source_uri" IS 'Absolute path or URI of the file with the first record, never percent-encoded; a member of an archive after `!`.';
COMMENT ON COLUMN rollouts."source_line" IS 'Line of the first record, from 1.';
COMMENT ON COLUMN rollouts."source_offset" IS 'Byte of the first record, from 0, in the decompressed stream.';
COMMENT ON COLUMN rollouts."adapter_version" IS 'Version of the adapter that wrote the row.';
COMMENT ON COLUMN rollouts."schema_version" IS 'Version of this schema.';
COMMENT ON COLUMN rollouts."batch_id" IS 'The ingest that wrote the row.';
COMMENT ON COLUMN rollouts."ingested_at" IS 'When that ingest began.';
COMMENT ON COLUMN rollouts."source" IS 'Name of the log stream (partition key).';
COMMENT ON COLUMN rollouts."day" IS 'UTC day the conversation started, YYYY-MM-DD or `unknown` (partition key).';

CREATE TABLE rejects (
    "reject_id"       VARCHAR NOT NULL,
    "source"          VARCHAR NOT NULL,
    "source_uri"      VARCHAR NOT NULL,
    "source_line"     BIGINT,
    "source_offset"   BIGINT,
    "length"          BIGINT NOT NULL,
    "reason"          VARCHAR NOT NULL,
    "message"         VARCHAR NOT NULL,
    "raw"             BLOB,
    "adapter"         VARCHAR,
    "adapter_version" INTEGER,
    "batch_id"        VARCHAR NOT NULL,
    "ingested_at"     TIMESTAMP WITH TIME ZONE NOT NULL
);
COMMENT ON TABLE rejects IS 'One row per record that could not be used; nothing is dropped in silence.';
COMMENT ON COLUMN rejects."reject_id" IS '128 bits of BLAKE2b over source, uri, offset and reason: the same on every run.';
COMMENT ON COLUMN rejects."source" IS 'Name of the log stream (partition key).';
COMMENT ON COLUMN rejects."source_uri" IS 'Absolute path or URI of the file; a member of an archive after `!`.';
COMMENT ON COLUMN rejects."source_line" IS 'Line where the record starts, from 1.';
COMMENT ON COLUMN rejects."source_offset" IS 'Byte where the record starts, from 0, in the decompressed stream.';
COMMENT ON COLUMN rejects."length" IS 'Bytes of the record as it stood in the source.';
COMMENT ON COLUMN rejects."reason" IS 'Code of what is wrong.';
COMMENT ON COLUMN rejects."message" IS 'What is wrong, where, and what to do.';
COMMENT ON COLUMN rejects."raw" IS 'The record itself, redacted like everything else.';
COMMENT ON COLUMN rejects."adapter" IS 'The adapter that read the file; null when none did.';
COMMENT ON COLUMN rejects."adapter_version" IS 'Its version.';
COMMENT ON COLUMN rejects."batch_id" IS 'The ingest that wrote the row.';
COMMENT ON COLUMN rejects."ingested_at" IS 'When that ingest began.';

CREATE TABLE sources (
    "source"          VARCHAR NOT NULL,
    "uri"             VARCHAR NOT NULL,
    "size"            BIGINT NOT NULL,
    "modified_at"     TIMESTAMP WITH TIME ZONE,
    "sha256"          VARCHAR,
    "adapter"         VARCHAR,
    "adapter_version" INTEGER,
    "state"           VARCHAR NOT NULL,
    "error"           VARCHAR,
    "records_in"      BIGINT NOT NULL,
    "records_used"    BIGINT NOT NULL,
    "rows"            BIGINT NOT NULL,
    "rejects"         BIGINT NOT NULL,
    "ignored"         VARCHAR,
    "batch_id"        VARCHAR NOT NULL,
    "ingested_at"     TIMESTAMP WITH TIME ZONE NOT NULL,
    "read_bytes"      BIGINT,
    "read_lines"      BIGINT,
    "read_sha256"     VARCHAR,
    "read_counts"     VARCHAR
);
COMMENT ON TABLE sources IS 'One row per file read: what it was, what it gave, and how far it was read.';
COMMENT ON COLUMN sources."source" IS 'Name of the log stream (partition key).';
COMMENT ON COLUMN sources."uri" IS 'Absolute path or URI of the file, never percent-encoded.';
COMMENT ON COLUMN sources."size" IS 'Bytes on disk, as stored (compressed).';
COMMENT ON COLUMN sources."modified_at" IS 'Modification time when it was read.';
COMMENT ON COLUMN sources."sha256" IS 'Digest of the bytes on disk; null when it could not be read.';
COMMENT ON COLUMN sources."adapter" IS 'The adapter that read it.';
COMMENT ON COLUMN sources."adapter_version" IS 'Its version.';
COMMENT ON COLUMN sources."state" IS 'done, growing (its last line was cut off), failed (could not be read or detected) or skipped (no conversation log).';
COMMENT ON COLUMN sources."error" IS 'Why it failed or was skipped.';
COMMENT ON COLUMN sources."records_in" IS 'Records the file has, in the smallest unit of its format; equals records_used + rejects + ignored.';
COMMENT ON COLUMN sources."records_used" IS 'Records that went into rows.';
COMMENT ON COLUMN sources."rows" IS 'Rows it gave.';
COMMENT ON COLUMN sources."rejects" IS 'Records that could not be used; each is a row of `rejects`.';
COMMENT ON COLUMN sources."ignored" IS 'JSON object: named rule → records that it left out.';
COMMENT ON COLUMN sources."batch_id" IS 'The ingest that last read it.';
COMMENT ON COLUMN sources."ingested_at" IS 'When that ingest began.';
COMMENT ON COLUMN sources."read_bytes" IS 'Bytes, from the start, that hold whole lines: where reading goes on once the file has grown. Null where a grown file is read anew.';
COMMENT ON COLUMN sources."read_lines" IS 'Lines in these bytes.';
COMMENT ON COLUMN sources."read_sha256" IS 'Digest of these bytes: they are not read again only while they are the same.';
COMMENT ON COLUMN sources."read_counts" IS 'JSON object: what these bytes gave, and under which settings.';

CREATE TABLE events (
    "source"           VARCHAR NOT NULL,
    "day"              VARCHAR NOT NULL,
    "conversation_key" VARCHAR NOT NULL,
    "record_key"       VARCHAR NOT NULL,
    "link_key"         VARCHAR,
    "at"               TIMESTAMP WITH TIME ZONE,
    "adapter"          VARCHAR NOT NULL,
    "payload"          VARCHAR NOT NULL,
    "redactions"       VARCHAR,
    "source_uri"       VARCHAR NOT NULL,
    "source_line"      BIGINT,
    "source_offset"    BIGINT,
    "batch_id"         VARCHAR NOT NULL
);
COMMENT ON TABLE events IS 'One record of a format whose conversations span files: kept, redacted, so that they can be put together again.';
COMMENT ON COLUMN events."source" IS 'Name of the log stream (partition key).';
COMMENT ON COLUMN events."day" IS 'UTC day of the event, YYYY-MM-DD or `unknown` (partition key).';
COMMENT ON COLUMN events."conversation_key" IS 'The adapter''s key of the conversation it belongs to (a trace id, a session id).';
COMMENT ON COLUMN events."record_key" IS '128 bits of BLAKE2b over the record before redaction: a copy of a record has the same.';
COMMENT ON COLUMN events."link_key" IS 'The source''s own id of the record; conversations that share one are put together as one family.';
COMMENT ON COLUMN events."at" IS 'When it happened.';
COMMENT ON COLUMN events."adapter" IS 'The adapter that read it.';
COMMENT ON COLUMN events."payload" IS 'The record as JSON, redacted; empty where the event only joins another link to its conversation.';
COMMENT ON COLUMN events."redactions" IS 'JSON object: redaction rule → how often it replaced something in the payload.';
COMMENT ON COLUMN events."source_uri" IS 'Absolute path or URI of the file.';
COMMENT ON COLUMN events."source_line" IS 'Line of the record, from 1.';
COMMENT ON COLUMN events."source_offset" IS 'Byte of the record, from 0, in the decompressed stream.';
COMMENT ON COLUMN events."batch_id" IS 'The ingest that wrote it.';
