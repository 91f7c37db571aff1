-- Every view and macro of a lake, for the plain `duckdb` program (1.5 or later) and the library (2.0 or later).
--
--     cd lake && duckdb -init views.sql
--     ETL_LAKE=/data/lake duckdb -init /data/lake/views.sql -c "SELECT count(*) FROM rollouts"
--
-- The lake is the variable etl_lake if it is set, else the environment variable ETL_LAKE (duckdb program only), else the
-- current folder. The views read the files that are live now, as the Delta log lists them; `.read views.sql` again to see
-- what was ingested since. Nothing is written: views and macros are temporary.
--
-- Stored columns are explained in rollout.v1.md. Views: rollouts (with system_prompt and steps[].result), rollouts_stored
-- (as in the files), messages, steps, events, rejects, sources, pass_rates, groups, duplicates, tool_rates, failures,
-- usage_daily, coverage, gaps; table: lake_tables (what is being read). Macros: wilson_low(k, n), wilson_high(k, n),
-- pass_at(n, c, k), pass_hat(n, c, k), FROM gaps_at(support), FROM pass_at(k), FROM pass_hat(k), FROM pass_rates_at(threshold), bootstrap_low(list), bootstrap_high(list),
-- FROM transcript(rollout_id). cookbook.md has twenty questions with their SQL.
-- `at` is a word of DuckDB's own grammar: write "at", or m.at after FROM messages m.

SET TimeZone = 'UTC';
SET parquet_metadata_cache = true; -- data files never change, they come and go

-- ---------------------------------------------------------------------------------------------------------------------
-- Where the lake is. The library has no getenv, and a name that does not exist cannot even be parsed around: the call is
-- text that is only looked at where the function is there. The list of functions is long: it is gone over only where nobody
-- said the lake.

SET VARIABLE etl_has_getenv = (
    FROM query(CASE WHEN getvariable('etl_lake') IS NULL
        THEN 'SELECT count(*) > 0 FROM duckdb_functions() WHERE function_name = ''getenv''' ELSE 'SELECT false' END)
);
SET VARIABLE etl_ask_environment = CASE WHEN getvariable('etl_has_getenv')
    THEN 'SELECT nullif(getenv(''ETL_LAKE''), '''')' ELSE 'SELECT NULL' END;
SET VARIABLE etl_lake = (
    SELECT regexp_replace(coalesce(getvariable('etl_lake'), (FROM query(getvariable('etl_ask_environment'))), '.'), '(.)/+$', '\1')
);

-- Characters of a path that would be taken for a pattern.
CREATE OR REPLACE TEMP MACRO etl_literal_path(path) AS regexp_replace(path, '([\[*?])', '[\1]', 'g');

-- ---------------------------------------------------------------------------------------------------------------------
-- The four stored tables. Each view runs the text in its variable: at first it names a typed empty table, which all other
-- views are made against without opening a file; the last statements of this script name the live files.

-- derived from etl/schema.py by `python -m etl.derive`: begin
CREATE OR REPLACE TEMP TABLE etl_no_rollouts AS SELECT NULL::VARCHAR AS "rollout_id", NULL::VARCHAR AS "task_id", NULL::VARCHAR AS "group_id", NULL::INTEGER AS "sample_index", NULL::VARCHAR AS "origin", NULL::VARCHAR AS "adapter", NULL::VARCHAR AS "conversation_id", NULL::VARCHAR AS "parent_id", NULL::VARCHAR AS "prompt", NULL::STRUCT("role" VARCHAR, "content" VARCHAR, "reasoning_content" VARCHAR, "tool_calls" STRUCT("id" VARCHAR, "type" VARCHAR, "function" STRUCT("name" VARCHAR, "arguments" VARCHAR))[], "tool_call_id" VARCHAR, "name" VARCHAR)[] AS "messages", NULL::STRUCT("id" VARCHAR, "at" TIMESTAMP WITH TIME ZONE, "model" VARCHAR, "finish_reason" VARCHAR, "input_tokens" BIGINT, "output_tokens" BIGINT, "inherited" BOOLEAN, "synthetic" BOOLEAN, "parts" VARCHAR, "extra" VARCHAR)[] AS "message_info", NULL::INTEGER AS "prompt_len", NULL::STRUCT("call_id" VARCHAR, "tool" VARCHAR, "actor" VARCHAR, "arguments" VARCHAR, "message_index" INTEGER, "result_index" INTEGER, "status" VARCHAR, "condition" VARCHAR, "error" VARCHAR, "raw_arguments" VARCHAR, "at" TIMESTAMP WITH TIME ZONE, "duration_ms" DOUBLE)[] AS "steps", NULL::VARCHAR AS "final_text", NULL::VARCHAR AS "tools", NULL::VARCHAR AS "status", NULL::VARCHAR AS "finish_reason", NULL::VARCHAR AS "error", NULL::DOUBLE AS "reward", NULL::VARCHAR AS "rewards", NULL::STRUCT("name" VARCHAR, "kind" VARCHAR, "value" DOUBLE, "label" VARCHAR, "status" VARCHAR, "reason" VARCHAR)[] AS "judgments", NULL::STRUCT("tool" VARCHAR, "tool_condition" VARCHAR, "world_state" VARCHAR, "stance" VARCHAR, "history" VARCHAR, "rule" VARCHAR, "length" VARCHAR) AS "scenario", NULL::VARCHAR AS "faults", NULL::BIGINT AS "seed", NULL::VARCHAR[] AS "seeded", NULL::VARCHAR AS "model", NULL::VARCHAR AS "provider", NULL::VARCHAR AS "policy_version", NULL::VARCHAR AS "agent", NULL::TIMESTAMP WITH TIME ZONE AS "started_at", NULL::TIMESTAMP WITH TIME ZONE AS "ended_at", NULL::STRUCT("input_tokens" BIGINT, "output_tokens" BIGINT, "cached_tokens" BIGINT, "cache_write_tokens" BIGINT, "reasoning_tokens" BIGINT, "cost_usd" DOUBLE) AS "usage", NULL::INTEGER[] AS "token_ids", NULL::TINYINT[] AS "loss_mask", NULL::FLOAT[] AS "logprobs", NULL::INTEGER AS "n_turns", NULL::INTEGER AS "n_steps", NULL::VARCHAR[] AS "flags", NULL::VARCHAR AS "redactions", NULL::VARCHAR AS "extra", NULL::INTEGER AS "n_records", NULL::VARCHAR AS "content_hash", NULL::VARCHAR AS "row_hash", NULL::VARCHAR AS "source_uri", NULL::BIGINT AS "source_line", NULL::BIGINT AS "source_offset", NULL::INTEGER AS "adapter_version", NULL::VARCHAR AS "schema_version", NULL::VARCHAR AS "batch_id", NULL::TIMESTAMP WITH TIME ZONE AS "ingested_at", NULL::VARCHAR AS "source", NULL::VARCHAR AS "day" WHERE false;
CREATE OR REPLACE TEMP TABLE etl_no_rejects AS SELECT NULL::VARCHAR AS "reject_id", NULL::VARCHAR AS "source", NULL::VARCHAR AS "source_uri", NULL::BIGINT AS "source_line", NULL::BIGINT AS "source_offset", NULL::BIGINT AS "length", NULL::VARCHAR AS "reason", NULL::VARCHAR AS "message", NULL::BLOB AS "raw", NULL::VARCHAR AS "adapter", NULL::INTEGER AS "adapter_version", NULL::VARCHAR AS "batch_id", NULL::TIMESTAMP WITH TIME ZONE AS "ingested_at" WHERE false;
CREATE OR REPLACE TEMP TABLE etl_no_sources AS SELECT NULL::VARCHAR AS "source", NULL::VARCHAR AS "uri", NULL::BIGINT AS "size", NULL::TIMESTAMP WITH TIME ZONE AS "modified_at", NULL::VARCHAR AS "sha256", NULL::VARCHAR AS "adapter", NULL::INTEGER AS "adapter_version", NULL::VARCHAR AS "state", NULL::VARCHAR AS "error", NULL::BIGINT AS "records_in", NULL::BIGINT AS "records_used", NULL::BIGINT AS "rows", NULL::BIGINT AS "rejects", NULL::VARCHAR AS "ignored", NULL::VARCHAR AS "batch_id", NULL::TIMESTAMP WITH TIME ZONE AS "ingested_at", NULL::BIGINT AS "read_bytes", NULL::BIGINT AS "read_lines", NULL::VARCHAR AS "read_sha256", NULL::VARCHAR AS "read_counts" WHERE false;
CREATE OR REPLACE TEMP TABLE etl_no_events AS SELECT NULL::VARCHAR AS "source", NULL::VARCHAR AS "day", NULL::VARCHAR AS "conversation_key", NULL::VARCHAR AS "record_key", NULL::VARCHAR AS "link_key", NULL::TIMESTAMP WITH TIME ZONE AS "at", NULL::VARCHAR AS "adapter", NULL::VARCHAR AS "payload", NULL::VARCHAR AS "redactions", NULL::VARCHAR AS "source_uri", NULL::BIGINT AS "source_line", NULL::BIGINT AS "source_offset", NULL::VARCHAR AS "batch_id" WHERE false;
-- derived: end

SET VARIABLE etl_rollouts_stored = 'SELECT * FROM etl_no_rollouts';
SET VARIABLE etl_rejects = 'SELECT * FROM etl_no_rejects';
SET VARIABLE etl_sources = 'SELECT * FROM etl_no_sources';
SET VARIABLE etl_events = 'SELECT * FROM etl_no_events';

CREATE OR REPLACE TEMP VIEW rollouts_stored AS FROM query(getvariable('etl_rollouts_stored'));
CREATE OR REPLACE TEMP VIEW rejects AS FROM query(getvariable('etl_rejects'));
CREATE OR REPLACE TEMP VIEW sources AS FROM query(getvariable('etl_sources'));
CREATE OR REPLACE TEMP VIEW events AS FROM query(getvariable('etl_events'));

-- ---------------------------------------------------------------------------------------------------------------------
-- Rows, messages, calls. `messages` is by far the largest column: nothing here reads it unless the query asks for what is in it.

CREATE OR REPLACE TEMP VIEW rollouts AS
SELECT
    * REPLACE (
        list_transform(steps, lambda s: struct_insert(s, result := messages[s.result_index + 1].content)) AS steps
    ),
    CASE WHEN messages[1].role IN ('system', 'developer') THEN messages[1].content END AS system_prompt
FROM rollouts_stored;

-- One row per message, with what its chat template must not see. (Lists are indexed, not unnested side by side: DuckDB then
-- leaves out the list that a query does not ask for.)
CREATE OR REPLACE TEMP VIEW messages AS
SELECT
    rollout_id, task_id, source, day, message_index, message_index < prompt_len AS in_prompt,
    m.role, m.content, m.reasoning_content, m.tool_calls, m.tool_call_id, m.name,
    i.id AS message_id, i.at, i.model, i.finish_reason, i.input_tokens, i.output_tokens, i.inherited, i.synthetic, i.parts, i.extra
FROM (
    SELECT
        rollout_id, task_id, source, day, prompt_len, message_index,
        messages[message_index + 1] AS m, message_info[message_index + 1] AS i
    FROM (
        SELECT
            rollout_id, task_id, source, day, prompt_len, messages, message_info,
            unnest(range(len(message_info)))::INTEGER AS message_index
        FROM rollouts_stored
    )
);

-- Calls that a row took over from another: those before the first turn that is its own. (A simulated user may call before
-- anybody else does, so his calls are taken over only where the row came from another.)
CREATE OR REPLACE TEMP MACRO etl_taken_over(s, prompt_len, parent_id) AS
    s.message_index < prompt_len AND (s.actor <> 'user' OR parent_id IS NOT NULL);

-- Which of them are the only trace of the call. Those of a row that names the one it came from are that one's. Where the log
-- shows but the end of each conversation (scored answers, both sides of a preference), nobody has them: of the rows of one group or
-- conversation that begin with the same calls, one that made them itself has them, else the first. (Looked for within source and
-- day, so that a question about one partition opens no other.)
CREATE OR REPLACE TEMP MACRO etl_kin(group_id, conversation_id, rollout_id) AS coalesce(group_id, conversation_id, rollout_id);
CREATE OR REPLACE TEMP VIEW etl_only_traces AS
SELECT rollout_id AS heir, source, day, list(step_index) AS only_here
FROM (
    SELECT
        rollout_id, source, day, step_index, etl_taken_over(s, prompt_len, NULL) AS taken_over,
        row_number() OVER (PARTITION BY source, day, kin, step_index, s.tool, s.arguments ORDER BY taken_over, rollout_id) AS copy
    FROM (
        SELECT rollout_id, source, day, kin, prompt_len, unnest(steps) AS s, unnest(range(len(steps)))::INTEGER AS step_index
        FROM (
            SELECT rollout_id, source, day, etl_kin(group_id, conversation_id, rollout_id) AS kin, prompt_len, steps
            FROM rollouts_stored WHERE parent_id IS NULL
        ) JOIN (
            SELECT DISTINCT source, day, etl_kin(group_id, conversation_id, rollout_id) AS kin FROM rollouts_stored
            WHERE parent_id IS NULL
                AND coalesce(list_bool_or(list_transform(steps, lambda s: etl_taken_over(s, prompt_len, NULL))), false)
        ) USING (source, day, kin)
    )
) WHERE taken_over AND copy = 1 GROUP BY rollout_id, source, day;

-- One row per tool call, with the text that came back. Branches, resumed copies and answers given again repeat calls that
-- another row of the lake has: these are `inherited`, and whoever counts calls leaves them out (WHERE NOT inherited).
CREATE OR REPLACE TEMP VIEW etl_steps AS
SELECT
    rollout_id, task_id, source, day, origin, model, step_index,
    s.call_id, s.tool, s.actor, s.arguments, s.message_index, s.result_index, s.status, s.condition, s.error, s.raw_arguments,
    s.at, s.duration_ms, etl_taken_over(s, prompt_len, parent_id) AND NOT coalesce(list_contains(only_here, step_index), false) AS inherited,
    messages[s.result_index + 1].content AS result, messages
FROM (
    SELECT
        rollout_id, task_id, source, day, origin, model, parent_id, prompt_len, only_here, messages,
        unnest(steps) AS s, unnest(range(len(steps)))::INTEGER AS step_index
    FROM (FROM rollouts_stored SELECT *, rollout_id AS heir) LEFT JOIN etl_only_traces USING (heir, source, day)
);
CREATE OR REPLACE TEMP VIEW steps AS SELECT * EXCLUDE (messages) FROM etl_steps;

-- ---------------------------------------------------------------------------------------------------------------------
-- Rates. Each comes with n and the 95 % Wilson interval; an attempt that nobody scored is counted apart, never as a failure.

-- Bounds of the 95 % Wilson score interval for k successes of n; null for n = 0.
CREATE OR REPLACE TEMP MACRO etl_wilson(k, n, side) AS
    CASE WHEN n > 0 THEN least(1.0, greatest(0.0, (
        k / n + 1.9207294103470868 / n + side * 1.9599639845400545 * sqrt(k / n * (1 - k / n) / n + 0.9603647051735434 / n / n)
    ) / (1 + 3.8414588206941735 / n))) END;
CREATE OR REPLACE TEMP MACRO wilson_low(k, n) AS CASE WHEN k = 0 AND n > 0 THEN 0.0 ELSE etl_wilson(k, n, -1) END;
CREATE OR REPLACE TEMP MACRO wilson_high(k, n) AS CASE WHEN k = n AND n > 0 THEN 1.0 ELSE etl_wilson(k, n, 1) END;

-- Chance that at least one of k attempts passes (pass@k), and that all k pass (pass^k): unbiased, from c passes in n
-- attempts; null where fewer than k attempts were made.
CREATE OR REPLACE TEMP MACRO pass_at(n, c, k) AS
    CASE WHEN k BETWEEN 1 AND n THEN
        CASE WHEN n - c < k THEN 1.0
        ELSE 1.0 - coalesce(list_product(list_transform(range(n - c + 1, n + 1), lambda i: (i - k) / i)), 1.0) END
    END;
CREATE OR REPLACE TEMP MACRO pass_hat(n, c, k) AS
    CASE WHEN k BETWEEN 1 AND n THEN
        CASE WHEN c < k THEN 0.0
        ELSE list_product(list_transform(range(0, k), lambda i: (c - i) / (n - i))) END
    END;

-- Passes by task, model, source and origin: an attempt passes when its reward is at least the threshold.
CREATE OR REPLACE TEMP MACRO pass_rates_at(threshold) AS TABLE
SELECT
    *, passed / nullif(n, 0) AS pass_rate, wilson_low(passed, n) AS low, wilson_high(passed, n) AS high
FROM (
    SELECT
        task_id, model, source, origin,
        count(reward) AS n, count(*) FILTER (reward >= threshold) AS passed, avg(reward) AS mean_reward,
        count(*) - count(reward) AS unscored
    FROM rollouts_stored GROUP BY task_id, model, source, origin
);
CREATE OR REPLACE TEMP VIEW pass_rates AS FROM pass_rates_at(1.0);

-- Mean of a list of per-task figures, with its 95 % bootstrap interval over tasks: 1000 resamples, the same on every run. Beyond
-- 1000 tasks the normal interval, which then says the same; one task alone says nothing of the spread, so its bounds are null.
CREATE OR REPLACE TEMP MACRO etl_resampled(figures) AS list_sort(list_transform(range(1000), lambda b:
    list_avg(list_transform(range(len(figures)), lambda i: figures[1 + (hash(b * 1000003 + i) % len(figures))::BIGINT]))
));
CREATE OR REPLACE TEMP MACRO etl_normal(figures, side) AS
    list_avg(figures) + side * 1.9599639845400545 * list_stddev_samp(figures) / sqrt(len(figures));
CREATE OR REPLACE TEMP MACRO bootstrap_low(figures) AS CASE
    WHEN len(figures) BETWEEN 2 AND 1000 THEN etl_resampled(figures)[26] WHEN len(figures) > 1000 THEN etl_normal(figures, -1) END;
CREATE OR REPLACE TEMP MACRO bootstrap_high(figures) AS CASE
    WHEN len(figures) BETWEEN 2 AND 1000 THEN etl_resampled(figures)[975] WHEN len(figures) > 1000 THEN etl_normal(figures, 1) END;

-- Mean over tasks of pass@k and pass^k, by model, source and origin, with the bootstrap interval over tasks; tasks with fewer than k
-- scored attempts are left out and counted.
CREATE OR REPLACE TEMP MACRO pass_at(k) AS TABLE
SELECT
    model, source, origin, list_avg(figures) AS pass_at_k, bootstrap_low(figures) AS low, bootstrap_high(figures) AS high,
    len(figures) AS tasks, tasks_left_out
FROM (
    SELECT
        model, source, origin, coalesce(list(pass_at(n, passed, k) ORDER BY task_id) FILTER (n >= k), []) AS figures,
        count(*) FILTER (n < k) AS tasks_left_out
    FROM pass_rates WHERE task_id IS NOT NULL AND n > 0 GROUP BY model, source, origin
);
CREATE OR REPLACE TEMP MACRO pass_hat(k) AS TABLE
SELECT
    model, source, origin, list_avg(figures) AS pass_hat_k, bootstrap_low(figures) AS low, bootstrap_high(figures) AS high,
    len(figures) AS tasks, tasks_left_out
FROM (
    SELECT
        model, source, origin, coalesce(list(pass_hat(n, passed, k) ORDER BY task_id) FILTER (n >= k), []) AS figures,
        count(*) FILTER (n < k) AS tasks_left_out
    FROM pass_rates WHERE task_id IS NOT NULL AND n > 0 GROUP BY model, source, origin
);

-- Declared repeats: one row per group, with the spread that a group-relative method learns from.
CREATE OR REPLACE TEMP VIEW groups AS
SELECT
    *, passed / nullif(n, 0) AS pass_rate, wilson_low(passed, n) AS low, wilson_high(passed, n) AS high
FROM (
    SELECT
        group_id, any_value(task_id) AS task_id, any_value(source) AS source, list_sort(list(DISTINCT model)) AS models,
        count(*) AS attempts, count(reward) AS n, count(*) FILTER (reward >= 1.0) AS passed,
        avg(reward) AS mean_reward, stddev_pop(reward) AS reward_spread, min(reward) AS min_reward, max(reward) AS max_reward,
        list(rollout_id ORDER BY sample_index, rollout_id) AS rollout_ids
    FROM rollouts_stored WHERE group_id IS NOT NULL GROUP BY group_id
);

-- Transcripts that are there more than once, word for word.
CREATE OR REPLACE TEMP VIEW duplicates AS
SELECT
    content_hash, count(*) AS copies, list_sort(list(DISTINCT source)) AS sources, list_sort(list(DISTINCT task_id)) AS task_ids,
    list(rollout_id ORDER BY started_at, rollout_id) AS rollout_ids
FROM rollouts_stored GROUP BY content_hash HAVING count(*) > 1;

-- Health of each tool, by who called it (`actor`) and whether it was traffic (`origin`). `n` are the calls whose end is known,
-- well or in an error (`failed`); the rate is of them, each call once. Calls of which the log has no result (`missing`: the last one of a
-- trace of model calls never has) and cancelled ones say nothing of the tool and stand apart.
CREATE OR REPLACE TEMP VIEW tool_rates AS
SELECT
    *, failed / nullif(n, 0) AS failure_rate, wilson_low(failed, n) AS low, wilson_high(failed, n) AS high
FROM (
    SELECT
        tool, source, actor, origin,
        count(*) FILTER (status IN ('ok', 'error')) AS n, count(*) FILTER (status = 'error') AS failed,
        failed AS errors, count(*) FILTER (status = 'missing') AS missing, count(*) FILTER (status = 'cancelled') AS cancelled,
        median(duration_ms) AS median_ms
    FROM steps WHERE NOT inherited GROUP BY tool, source, actor, origin
);

-- Every call that ended in an error or without a result (`status` says which), once, with what the agent said next.
CREATE OR REPLACE TEMP VIEW failures AS
SELECT
    rollout_id, task_id, source, day, origin, model, step_index, tool, actor, status, condition, error, arguments, result,
    list_filter(messages[coalesce(result_index, message_index) + 2:], lambda m: m.role = 'assistant')[1].content AS then_said
FROM etl_steps WHERE status IN ('error', 'missing') AND NOT inherited;

-- Rows, tokens and money by day.
CREATE OR REPLACE TEMP VIEW usage_daily AS
SELECT
    day, source, model, count(*) AS rollouts, count(usage) AS with_usage,
    sum(usage.input_tokens)::BIGINT AS input_tokens, sum(usage.output_tokens)::BIGINT AS output_tokens,
    sum(usage.cached_tokens)::BIGINT AS cached_tokens, sum(usage.cache_write_tokens)::BIGINT AS cache_write_tokens,
    sum(usage.reasoning_tokens)::BIGINT AS reasoning_tokens, sum(usage.cost_usd) AS cost_usd
FROM rollouts_stored GROUP BY day, source, model;

-- One conversation, top to bottom: FROM transcript('r_…').
CREATE OR REPLACE TEMP MACRO transcript(wanted) AS TABLE
SELECT
    message_index, role, "at", content, reasoning_content,
    list_transform(tool_calls, lambda c: c.function.name || '(' || c.function.arguments || ')') AS calls,
    coalesce(tool_call_id, name) AS answers
FROM messages WHERE rollout_id = wanted ORDER BY message_index;

-- ---------------------------------------------------------------------------------------------------------------------
-- Coverage. The unit is the step of the agent: which tool, which condition (success where the call ended well, as
-- `tool_rates` counts it; null = unclassified), which position (first, after_failure: the call before it failed, repeat: the
-- same tool was called before; inherited calls stand before, but do not count). Support counts distinct tasks; a row without one is a task of its own. What a labeller or
-- the simulator intended are axes of their own, `scenario.…`.

CREATE OR REPLACE TEMP MACRO etl_met(s) AS coalesce(s.condition, CASE WHEN s.status = 'ok' THEN 'success' END);

CREATE OR REPLACE TEMP VIEW etl_positions AS
SELECT
    task, origin, s.tool AS tool, etl_met(s) AS condition, s.condition IS NOT NULL AS classified, s.arguments AS arguments,
    CASE
        WHEN list_extract(failed, place - 1) THEN 'after_failure'
        WHEN list_contains(list_slice(tools, 1, place - 1), s.tool) THEN 'repeat'
        ELSE 'first'
    END AS position
FROM (
    SELECT task, origin, tools, failed, place, calls[place] AS s, inherited[place] AS is_inherited
    FROM (
        SELECT
            task, origin, calls, inherited, list_transform(calls, lambda s: s.tool) AS tools,
            list_transform(
                calls, lambda s: s.status IN ('error', 'missing') OR coalesce(s.condition <> 'success', false)
            ) AS failed,
            unnest(range(1, len(calls) + 1)) AS place
        FROM (
            SELECT
                coalesce(task_id, rollout_id) AS task, origin, list_filter(steps, lambda s: s.actor = 'agent') AS calls,
                list_filter(list_transform(steps, lambda s, i: CASE WHEN s.actor = 'agent' THEN
                    etl_taken_over(s, prompt_len, parent_id) AND NOT coalesce(list_contains(only_here, i - 1), false)
                END), lambda x: x IS NOT NULL) AS inherited
            FROM (FROM rollouts_stored SELECT *, rollout_id AS heir) LEFT JOIN etl_only_traces USING (heir, source, day)
        )
    )
) WHERE NOT is_inherited;

-- One row per pair of values and origin: in how many tasks it was seen, and how often.
CREATE OR REPLACE TEMP VIEW coverage AS
WITH met AS MATERIALIZED (
    SELECT task, origin, tool, condition, position, count(*) AS times FROM etl_positions GROUP BY ALL
)
SELECT axis_1, value_1, axis_2, value_2, origin, count(DISTINCT task) AS support, sum(times)::BIGINT AS times
FROM (
    SELECT task, origin, 'tool' AS axis_1, tool AS value_1, 'condition' AS axis_2, condition AS value_2, times FROM met
    UNION ALL
    SELECT task, origin, 'tool', tool, 'position', position, times FROM met
    UNION ALL
    SELECT task, origin, 'condition', condition, 'position', position, times FROM met
    UNION ALL
    SELECT task, origin, a.axis, a.value, b.axis, b.value, 1
    FROM (
        SELECT task, origin, intended, unnest(intended) AS a
        FROM (
            SELECT
                coalesce(task_id, rollout_id) AS task, origin,
                [
                    struct_pack(place := 1, axis := 'scenario.tool', value := scenario.tool),
                    struct_pack(place := 2, axis := 'scenario.tool_condition', value := scenario.tool_condition),
                    struct_pack(place := 3, axis := 'scenario.world_state', value := scenario.world_state),
                    struct_pack(place := 4, axis := 'scenario.stance', value := scenario.stance),
                    struct_pack(place := 5, axis := 'scenario.history', value := scenario.history),
                    struct_pack(place := 6, axis := 'scenario.rule', value := scenario.rule),
                    struct_pack(place := 7, axis := 'scenario.length', value := scenario.length)
                ] AS intended
            FROM rollouts_stored WHERE scenario IS NOT NULL
        )
    ), unnest(intended) AS other(b)
    WHERE a.place < b.place
)
WHERE value_1 IS NOT NULL AND value_2 IS NOT NULL
GROUP BY ALL;

-- What traffic shows too rarely: pairs over the axes that traffic can show, seen there in fewer tasks than the minimum.
-- Simulation never counts as traffic: `simulated` stands apart, `missing` is what neither of them has. Wanted are, of every
-- tool that traffic calls or offers: success; every other condition that some tool was seen in, unless the tool cannot meet
-- it or no log says what conditions its calls met (null is unobserved, never a gap); every position. Ranked by
-- shortfall times the tool's smoothed share of the calls.
CREATE OR REPLACE TEMP MACRO gaps_at(min_support) AS TABLE
WITH called AS (
    SELECT
        tool, count(*) AS calls, count(*) FILTER (classified) AS classified, bool_or(arguments <> '{}') AS takes_arguments,
        list(DISTINCT condition) AS seen, count(DISTINCT task) FILTER (condition IS NULL) AS unclassified
    FROM etl_positions WHERE origin = 'traffic' GROUP BY tool
), offered AS (
    SELECT DISTINCT unnest(json_extract_string(tools, '$[*].function.name')) AS tool
    FROM (SELECT DISTINCT tools FROM rollouts_stored WHERE origin = 'traffic' AND tools IS NOT NULL)
), tools AS (
    SELECT
        tool, coalesce(calls, 0) AS calls, coalesce(classified, 0) AS classified, coalesce(takes_arguments, true) AS takes_arguments,
        coalesce(seen, []) AS seen, coalesce(unclassified, 0) AS unclassified,
        (coalesce(calls, 0) + 1) / sum(coalesce(calls, 0) + 1) OVER () AS share,
        regexp_matches(
            lower(tool),
            '(^|[_.]|__)(cancel|refund|return|exchange|close|approve|reject|confirm|ship|complete|resolve|archive|create|book|add|delete|remove)'
        ) AS acts
    FROM called FULL JOIN offered USING (tool) WHERE tool IS NOT NULL AND tool <> ''
), conditions AS (
    SELECT condition FROM (SELECT DISTINCT unnest(seen) AS condition FROM called) WHERE condition IS NOT NULL
    UNION SELECT 'success'
), positions AS (
    SELECT unnest(['first', 'after_failure', 'repeat']) AS position
), wanted AS (
    SELECT 'tool' AS axis_1, tool AS value_1, 'condition' AS axis_2, condition AS value_2, share, unclassified
    FROM tools, conditions
    WHERE condition = 'success' OR list_contains(seen, condition) OR (
        (calls = 0 OR classified > 0)
        AND CASE
            WHEN condition IN ('not_found', 'invalid_arguments') THEN takes_arguments
            WHEN condition = 'already_done' THEN acts
            WHEN condition = 'stale_result' THEN NOT acts
            ELSE true
        END
    )
    UNION ALL
    SELECT 'tool', tool, 'position', position, share, 0 FROM tools, positions
    UNION ALL
    SELECT 'condition', condition, 'position', position, 1 / (SELECT count(*) FROM tools), 0
    FROM conditions, positions WHERE (SELECT count(*) FROM tools) > 0
), supported AS (
    SELECT
        axis_1, value_1, axis_2, value_2,
        sum(support) FILTER (origin = 'traffic')::BIGINT AS support, sum(support) FILTER (origin = 'simulation')::BIGINT AS simulated
    FROM coverage GROUP BY ALL
), short AS (
    SELECT
        wanted.axis_1, wanted.value_1, wanted.axis_2, wanted.value_2, coalesce(support, 0) AS support,
        coalesce(simulated, 0) AS simulated, share, unclassified
    FROM wanted LEFT JOIN supported USING (axis_1, value_1, axis_2, value_2)
    WHERE coalesce(support, 0) < min_support
)
SELECT
    row_number() OVER (ORDER BY (min_support - support) * share DESC, axis_1, value_1, axis_2, value_2) AS rank,
    axis_1, value_1, axis_2, value_2, support, simulated, (min_support - support)::BIGINT AS shortfall,
    greatest(min_support - support - simulated, 0)::BIGINT AS missing, share, unclassified
FROM short ORDER BY rank;
CREATE OR REPLACE TEMP VIEW gaps AS FROM gaps_at(5);

-- ---------------------------------------------------------------------------------------------------------------------
-- Which files are live: the adds of the newest checkpoint, and the adds and removes of the commits after it.

SET VARIABLE etl_log = (
    WITH listed AS (
        SELECT 'rollouts' AS name, file FROM glob(etl_literal_path(getvariable('etl_lake')) || '/rollouts/_delta_log/*')
        UNION ALL
        SELECT 'rejects', file FROM glob(etl_literal_path(getvariable('etl_lake')) || '/rejects/_delta_log/*')
        UNION ALL
        SELECT 'sources', file FROM glob(etl_literal_path(getvariable('etl_lake')) || '/sources/_delta_log/*')
        UNION ALL
        SELECT 'events', file FROM glob(etl_literal_path(getvariable('etl_lake')) || '/events/_delta_log/*')
    ), numbered AS (
        SELECT
            name, file,
            regexp_extract(file, '(\d{20})(\.json|\.checkpoint[^/\\]*\.parquet)$', 1) AS version,
            file LIKE '%.parquet' AS is_checkpoint
        FROM listed
    ), newest AS (
        SELECT name, max(version) FILTER (is_checkpoint) AS checkpoint FROM numbered GROUP BY name
    )
    SELECT list(struct_pack(name := name, version := version::BIGINT, is_checkpoint := is_checkpoint, file := file))
    FROM numbered JOIN newest USING (name)
    WHERE version <> '' AND CASE WHEN is_checkpoint THEN version = checkpoint ELSE version > coalesce(checkpoint, '') END
);
SET VARIABLE etl_is_there = CASE WHEN len(getvariable('etl_log')) > 0 THEN true
    ELSE error('no lake at ''' || getvariable('etl_lake') || ''': set ETL_LAKE, or start duckdb in the lake''s folder') END;
SET VARIABLE etl_checkpoints = list_filter(getvariable('etl_log'), lambda f: f.is_checkpoint).list_transform(lambda f: f.file);
SET VARIABLE etl_commits = list_filter(getvariable('etl_log'), lambda f: NOT f.is_checkpoint).list_transform(lambda f: f.file);

SET VARIABLE etl_actions = concat_ws(
    ' UNION ALL ',
    'SELECT NULL AS file, NULL AS added, NULL AS removed WHERE false',
    CASE WHEN len(getvariable('etl_checkpoints')) > 0 THEN
        'SELECT filename, "add".path, NULL FROM read_parquet(getvariable(''etl_checkpoints''), filename = true, union_by_name = true)'
    END,
    CASE WHEN len(getvariable('etl_commits')) > 0 THEN
        'SELECT filename, "add".path, "remove".path FROM read_json(getvariable(''etl_commits''), filename = true, '
        || 'format = ''newline_delimited'', columns = {''add'': ''STRUCT(path VARCHAR)'', ''remove'': ''STRUCT(path VARCHAR)''})'
    END
);
-- A path of the log is a URI reference: decoded once it is the name on disk.
SET VARIABLE etl_live = (
    WITH actions AS (
        SELECT
            regexp_extract(file, '([a-z]+)[/\\]_delta_log[/\\][^/\\]*$', 1) AS name,
            regexp_extract(file, '(\d{20})\.[^/\\]*$', 1) AS version,
            coalesce(added, removed) AS path,
            added IS NOT NULL AS is_live
        FROM query(getvariable('etl_actions')) WHERE added IS NOT NULL OR removed IS NOT NULL
    ), last_word AS (
        SELECT name, path, arg_max(is_live, (version, is_live)) AS is_live FROM actions GROUP BY name, path
    )
    SELECT list(struct_pack(name := name, file := getvariable('etl_lake') || '/' || name || '/' || url_decode(path)) ORDER BY name, path)
    FROM last_word WHERE is_live
);

-- Partition keys are read as text ('007' stays '007'); filters on them open only their files.
CREATE OR REPLACE TEMP MACRO etl_reading(table_name, hive_types) AS (
    SELECT CASE WHEN count(*) = 0 THEN 'SELECT * FROM etl_no_' || table_name ELSE
        'SELECT * FROM read_parquet(['
        || string_agg('''' || replace(etl_literal_path(live.file), '''', '''''') || '''', ', ' ORDER BY live.file)
        || '], hive_partitioning = true, hive_types = ' || hive_types || ')'
    END
    FROM (SELECT unnest(getvariable('etl_live')) AS live) WHERE live.name = table_name
);
SET VARIABLE etl_rollouts_stored = etl_reading('rollouts', '{''source'': VARCHAR, ''day'': VARCHAR}');
SET VARIABLE etl_rejects = etl_reading('rejects', '{''source'': VARCHAR}');
SET VARIABLE etl_sources = etl_reading('sources', '{''source'': VARCHAR}');
SET VARIABLE etl_events = etl_reading('events', '{''source'': VARCHAR, ''day'': VARCHAR}');

-- What is being read: the version of each table and its live files.
CREATE OR REPLACE TEMP TABLE lake_tables AS
SELECT
    name, getvariable('etl_lake') AS lake,
    (SELECT max(entry.version) FROM (SELECT unnest(getvariable('etl_log')) AS entry) WHERE entry.name = tables.name) AS version,
    len(list_filter(getvariable('etl_live'), lambda f: f.name = tables.name)) AS live_files
FROM (VALUES ('rollouts'), ('rejects'), ('sources'), ('events')) AS tables(name);
