"""The schema: every stored table and column, declared once."""

from store.columns import Column, Kind, Table
from store.manifest import MANIFEST
from store.rollups.tables import ROLLUPS

T, N, F, J, TS, M = Kind.TEXT, Kind.INT, Kind.FLOAT, Kind.JSON, Kind.TIME, Kind.MONEY

SPANS = Table(
    name="spans",
    doc="One row per span. LLM request fields are columns whatever dialect they came in; the rest is in attributes.",
    key=("trace_id", "span_id"),
    time="ts",
    sealed=True,
    columns=(
        Column("trace_id", T, "trace id, 32 lower-case hex characters"),
        Column("span_id", T, "span id, 16 lower-case hex characters"),
        Column("parent_span_id", T, "span id of the parent; null for a root"),
        Column("ts", TS, "start of the span; for a request its arrival"),
        Column("duration_s", F, "end minus start; null when the end is missing or lies before the start", "s"),
        Column("name", T, "span name"),
        Column("kind", T, "internal, server, client, producer or consumer"),
        Column("status", T, "unset, ok or error"),
        Column("status_message", T, "description of an error status"),
        Column("service", T, "resource service.name"),
        Column("service_version", T, "resource service.version"),
        Column("environment", T, "resource deployment.environment.name"),
        Column("host", T, "resource host.name"),
        Column("cluster", T, "resource k8s.cluster.name"),
        Column("cloud_provider", T, "resource cloud.provider"),
        Column("cloud_region", T, "resource cloud.region"),
        Column("cloud_zone", T, "resource cloud.availability_zone"),
        Column("operation", T, "LLM operation (chat, embeddings, …; inference where unnamed); null: no LLM request"),
        Column("provider", T, "LLM provider or engine"),
        Column("model", T, "model that answered, else model asked for"),
        Column("request_model", T, "model asked for"),
        Column("response_model", T, "model that answered"),
        Column("input_tokens", N, "prompt tokens, cached ones included", "tokens"),
        Column("output_tokens", N, "generated tokens, reasoning included", "tokens"),
        Column("cached_input_tokens", N, "prompt tokens served from a cache", "tokens"),
        Column("cache_write_tokens", N, "prompt tokens written to a cache", "tokens"),
        Column("reasoning_tokens", N, "generated tokens spent on reasoning", "tokens"),
        Column("ttft_s", F, "time to first token, from request start", "s"),
        Column("ttft_source", T, "client or server: who measured ttft_s; they differ by network and queue"),
        Column("tpot_s", F, "time per output token after the first", "s"),
        Column("queue_s", F, "time waiting for the scheduler", "s"),
        Column("prefill_s", F, "prefill time (vLLM: from scheduled; SGLang: from dispatch, queue included)", "s"),
        Column("decode_s", F, "decode time, first to last token", "s"),
        Column("inference_s", F, "prefill and decode", "s"),
        Column("e2e_s", F, "end-to-end latency; the span's duration where not stated", "s"),
        Column("stream", Kind.BOOL, "answer was streamed"),
        Column("finish_reason", T, "why generation stopped"),
        Column("max_tokens", N, "limit asked for", "tokens"),
        Column("temperature", F, "sampling temperature asked for"),
        Column("top_p", F, "nucleus sampling asked for"),
        Column("choices", N, "number of completions asked for"),
        Column("request_id", T, "id of the request as engine or provider knows it"),
        Column("error_code", T, "normalised error: HTTP_429, GRPC_UNAVAILABLE, TIMEOUT, a class name; null when fine"),
        Column("server_address", T, "host and port that served the request"),
        Column("cost_usd", F, "cost stated by the source", "USD"),
        Column("resend_count", N, "how many attempts came before this one"),
        Column(
            "quality",
            T,
            "comma-separated doubts: clock_skew, open_end, long, no_time, queue_in_prefill, invalid_utf8, truncated",
        ),
        Column("scope", T, "instrumentation scope"),
        Column("attributes", J, "all attributes that are no column"),
        Column("resource", J, "all resource attributes that are no column"),
        Column("events", J, "span events: [{name, ts_unix_nano, attributes}]"),
        Column("links", J, "span links: [{trace_id, span_id, attributes}]"),
    ),
)

METRIC_SERIES = Table(
    name="metric_series",
    doc="One row per time series: its raw name beside the canonical one, and how its value converts.",
    key=("series_id",),
    refreshed=("canonical", "kind", "semantic", "unit", "scale", "combine"),  # a newer preset or --map names it better
    columns=(
        Column("series_id", Kind.ID, "hash of name and sorted labels"),
        Column("name", T, "name on the wire"),
        Column("canonical", T, "canonical name (preset); null where no preset knows it"),
        Column(
            "kind", T, "type as exposed: counter, gauge, histogram, exponential_histogram, summary, unknown; or null"
        ),
        Column("semantic", T, "level, rate, cumulative, last_event, bitmask or info; null where no preset knows it"),
        Column("unit", T, "unit of the canonical value"),
        Column("scale", F, "canonical value = value x scale"),
        Column("combine", T, "how series of one entity combine: sum, mean or max"),
        Column("job", T, "scrape job"),
        Column("instance", T, "scraped address"),
        Column("service", T, "label service or service_name, else the job: joins with spans.service"),
        Column("labels", J, "all labels and those a preset adds; le in the canonical unit: raw where scale is 1"),
        Column("first_ts", TS, "first sample seen"),
    ),
)

METRIC_SAMPLES = Table(
    name="metric_samples",
    doc="Raw samples. A null value marks the end of a series (staleness) or a value that is not available.",
    key=("series_id", "ts"),
    time="ts",
    sealed=True,
    columns=(
        Column("series_id", Kind.ID, "series"),
        Column("ts", TS, "time of the sample"),
        Column("value", F, "raw value; null: stale or not available"),
    ),
)

EVENTS = Table(
    name="events",
    doc="One row per thing that happened: a driver's Xid, a switch error, a kernel message.",
    key=("event_id",),
    time="ts",
    columns=(
        Column("event_id", T, "hash of what makes it one event: time, kind, host, entity, code and message"),
        Column("ts", TS, "when it happened"),
        Column("kind", T, "xid, nvswitch_error, fabric_manager, oom_kill, pcie_error, network_link_down, …"),
        Column("severity", T, "info, warning or critical"),
        Column("host", T, "host it happened on"),
        Column("service", T, "service, where one was named at import"),
        Column("entity", T, "what it happened to: PCI address of a GPU or switch, network device, process"),
        Column("code", T, "code of the source: number of an Xid or SXid"),
        Column("message", T, "what the source said"),
        Column("labels", J, "more that is known: gpu_uuid, pid, process, port, meaning"),
        Column("source", T, "where it came from"),
    ),
)

TOKEN_ARRIVALS = Table(
    name="token_arrivals",
    doc="When the parts of a streamed answer arrived, one row per request. An event may carry several tokens.",
    key=("trace_id", "span_id"),
    time="ts",
    sealed=True,
    columns=(
        Column("trace_id", T, "trace of the request, as in spans"),
        Column("span_id", T, "span of the request, as in spans"),
        Column("ts", TS, "start of the request, as in spans"),
        Column("service", T, "service of the span"),
        Column("measured_by", T, "client or server"),
        Column("offsets_us", Kind.INTS, "arrival of each event after ts", "us"),
        Column("tokens", Kind.INTS, "tokens of each event; null where every event is one token", "tokens"),
        Column("paints_us", Kind.INTS, "frames of a browser that showed new text, after ts", "us"),
    ),
)

KV_EVENTS = Table(
    name="kv_events",
    doc="Events of a KV cache as its engine publishes them: blocks stored, removed, all cleared.",
    key=("stream", "sequence", "position", "ts"),  # an engine that starts again counts from 0 again
    time="ts",
    sealed=True,
    columns=(
        Column("stream", T, "publisher: its endpoint and topic, or the file's name"),
        Column("sequence", N, "number of the message in its stream; starts again with the engine"),
        Column("position", N, "place of the event in its message"),
        Column("ts", TS, "time of the message, as the engine says"),
        Column("service", T, "service of the engine"),
        Column("instance", T, "address of the engine"),
        Column("kind", T, "stored, removed or cleared"),
        Column("block_hashes", Kind.IDS, "blocks, in order; hashes longer than 64 bits are folded"),
        Column("parent_block_hash", Kind.ID, "block before the first one stored; null at the start of a prompt"),
        Column("tokens", N, "tokens in the blocks stored", "tokens"),
        Column("block_size", N, "tokens in a block", "tokens"),
        Column("medium", T, "where the blocks are: GPU, CPU, …"),
        Column("attributes", J, "the rest of the event, token ids left out"),
    ),
)

REQUEST_BLOCKS = Table(
    name="request_blocks",
    doc="Prefix blocks of a request, from traces that state them: what an ideal prefix cache could share.",
    key=("trace_id", "span_id"),
    time="ts",
    sealed=True,
    columns=(
        Column("trace_id", T, "trace of the request, as in spans"),
        Column("span_id", T, "span of the request, as in spans"),
        Column("ts", TS, "start of the request, as in spans"),
        Column("service", T, "service of the request"),
        Column("conversation", T, "session or conversation it belongs to"),
        Column("block_size", N, "tokens (or characters, see unit) in a block"),
        Column("unit", T, "tokens or characters"),
        Column("block_hashes", Kind.IDS, "blocks of the prompt, in order; equal hashes share a prefix"),
    ),
)

COSTS = Table(
    name="costs",
    doc="One row per charge line of a bill or usage report, in the terms of FOCUS.",
    key=("line_id",),
    time="ts",
    refreshed=(  # a later export restates a line
        "billing_period",
        "provider",
        "account",
        "sub_account",
        "cost_service",
        "category",
        "correction",
        "region",
        "zone",
        "resource",
        "sku",
        "description",
        "model",
        "tenant",
        "environment",
        "service",
        "quantity",
        "unit",
        "list_unit_price",
        "billed_cost",
        "effective_cost",
        "list_cost",
        "contracted_cost",
        "currency",
        "requests",
        "quality",
        "source",
        "tags",
    ),
    columns=(
        Column("line_id", T, "hash of what makes it one line of its source"),
        Column("ts", TS, "charge period start"),
        Column("end_ts", TS, "charge period end"),
        Column("billing_period", TS, "billing period start"),
        Column("provider", T, "who provides the service"),
        Column("account", T, "billing account"),
        Column("sub_account", T, "sub account, subscription or project"),
        Column("cost_service", T, "service name of the provider"),
        Column("category", T, "FOCUS ChargeCategory: Usage, Purchase, Tax, Credit, Adjustment"),
        Column("correction", Kind.BOOL, "restates an earlier line (FOCUS ChargeClass Correction)"),
        Column("region", T, "region"),
        Column("zone", T, "availability zone"),
        Column("resource", T, "resource"),
        Column("sku", T, "SKU or meter"),
        Column("description", T, "what the line says of itself"),
        Column("model", T, "LLM model, where it is about one"),
        Column("tenant", T, "team, key or customer it is charged to"),
        Column("environment", T, "environment, from tags or --label"),
        Column("service", T, "service it belongs to, from tags or --label: joins with spans.service"),
        Column("quantity", F, "consumed quantity"),
        Column("unit", T, "unit of the quantity"),
        Column("list_unit_price", M, "list price per unit, in the currency"),
        Column("billed_cost", M, "billed, in the currency"),
        Column("effective_cost", M, "amortised cost, in the currency"),
        Column("list_cost", M, "cost at list prices, in the currency"),
        Column("contracted_cost", M, "cost at contracted prices, in the currency"),
        Column("currency", T, "billing currency, ISO 4217"),
        Column("tokens_kind", T, "input, output, cached_input, cache_write, reasoning, where it is about tokens"),
        Column("requests", N, "model requests, where a usage report counts them", "requests"),
        Column(
            "quality", T, "comma-separated doubts: unpriced, clamped, no_currency, rounded (more than 18 decimals), …"
        ),
        Column(
            "source", T, "form it came in: focus_1.0, aws_cur, azure_ea, oci, openai_costs, anthropic_usage, litellm, …"
        ),
        Column("tags", J, "tags and columns that are none of these"),
    ),
)

PRICES = Table(
    name="prices",
    doc="One row per model of an imported price list and time from which its price holds; earlier prices stay.",
    key=("price_id", "valid_from"),
    refreshed=(  # a list that states its dates may restate a price
        "valid_to",
        "currency",
        "input_per_1m",
        "cached_input_per_1m",
        "cache_write_per_1m",
        "output_per_1m",
        "reasoning_per_1m",
        "tiers",
        "batch",
        "source",
    ),
    columns=(
        Column("price_id", T, "hash of list, provider and model"),
        Column("list", T, "form of the list: litellm, llm_prices, genai_prices, own"),
        Column("provider", T, "provider, named as in spans; null: any"),
        Column("model", T, "model as the provider names it, in lower case; of own lists also a pattern with * and ?"),
        Column("listed_as", T, "name in the list"),
        Column("valid_from", TS, "from when the price holds; 1970 where no list says another time"),
        Column("valid_to", TS, "until when; null: until the next row of the same price_id"),
        Column("currency", T, "currency, ISO 4217"),
        Column("input_per_1m", F, "price of a million prompt tokens, in the currency"),
        Column("cached_input_per_1m", F, "of a million prompt tokens served from a cache; null: as input"),
        Column("cache_write_per_1m", F, "of a million prompt tokens written to a cache; null: as input"),
        Column("output_per_1m", F, "of a million generated tokens"),
        Column("reasoning_per_1m", F, "of a million reasoning tokens; null: as output"),
        Column("tiers", J, "prices of long prompts: [{above_input_tokens, input_per_1m, …}]"),
        Column("batch", J, "prices of batch requests: {input_per_1m, …, tiers}; null: not stated"),
        Column("source", T, "file it came from"),
    ),
)

BENCHMARKS = Table(
    name="benchmarks",
    doc="Figures of load tests as their tools state them, one row per statistic.",
    key=("run", "stage", "metric", "statistic"),
    time="ts",
    columns=(
        Column("run", T, "run: the tool's id or the file's name"),
        Column("stage", T, "stage or load level within the run"),
        Column("ts", TS, "start of the run or stage"),
        Column("tool", T, "aiperf, guidellm, vllm_bench, inference_perf, llmperf, nccl_tests, …"),
        Column("engine", T, "serving engine"),
        Column("model", T, "model"),
        Column("concurrency", F, "concurrent requests"),
        Column("request_rate", F, "requests sent per second", "requests/s"),
        Column("metric", T, "ttft_s, itl_s, e2e_s, throughput_tokens_per_second, bus_bandwidth_bytes_per_second, …"),
        Column("statistic", T, "mean, p50, p99, min, max, value, …"),
        Column("value", F, "value in the metric's base unit"),
        Column("unit", T, "unit of the value"),
        Column("labels", J, "what else the tool says of the run"),
        Column("source", T, "file it came from"),
    ),
)

INGEST_BATCH = Table(
    name="ingest_batch",
    doc="Ledger: one row per committed batch and table.",
    key=("batch_id", "table_name"),
    columns=(
        Column("batch_id", T, "batch"),
        Column("source", T, "where it came from"),
        Column("table_name", T, "table appended to"),
        Column("rows", N, "rows stored", "rows"),
        Column("duplicates", N, "rows already there, not stored again", "rows"),
        Column("min_ts", TS, "earliest row"),
        Column("max_ts", TS, "latest row"),
        Column("committed", TS, "time of commit"),
        Column("sequence", N, "number of the append, as in the journal; grows with every commit"),
    ),
)

INGEST_DROPS = Table(
    name="ingest_drops",
    doc="Rows refused, counted by source and reason.",
    key=("batch_id", "reason"),
    columns=(
        Column("batch_id", T, "batch they came in"),
        Column("source", T, "where they came from"),
        Column("reason", T, "why they were refused"),
        Column("rows", N, "how many", "rows"),
        Column("committed", TS, "time counted"),
    ),
)

STORE_STATE = Table(
    name="store_state",
    doc="Marks of the store's own work.",
    key=("name",),
    columns=(
        Column("name", T, "journal_sequence: last append; rolled_sequence: last append in the rollups"),
        Column("value", N, "the mark"),
    ),
)

TABLES: tuple[Table, ...] = (
    SPANS,
    METRIC_SERIES,
    METRIC_SAMPLES,
    EVENTS,
    TOKEN_ARRIVALS,
    KV_EVENTS,
    REQUEST_BLOCKS,
    COSTS,
    PRICES,
    BENCHMARKS,
    INGEST_BATCH,
    INGEST_DROPS,
    MANIFEST,
    STORE_STATE,
    *ROLLUPS,
)
BY_NAME = {table.name: table for table in TABLES}

INFERENCE_OPERATIONS = (
    "chat", "text_completion", "generate_content", "embeddings", "completion", "rerank", "inference",
)  # fmt: skip
"""Values of spans.operation that are one model request; agent, tool and fetch spans would count tokens twice."""
