/* infractl-stream.js: when the parts of a streamed answer came and were painted, as one OTLP span. No text is sent. */
(() => {
  "use strict";
  const MOST = 60000; // bytes; browsers let 64 KiB of keepalive requests be under way
  const ARRIVALS = "infractl.token.offsets_us", COUNTS = "infractl.token.counts", PAINTS = "infractl.paint.offsets_us";
  const send = globalThis.fetch?.bind(globalThis); // as it was before anyone wrapped it
  const page = globalThis.document, live = new Set(), retries = new Set();
  const now = () => performance.now(), hidden = () => page?.visibilityState === "hidden";
  const random = (bytes) => [...crypto.getRandomValues(new Uint8Array(bytes))];
  const hex = (bytes) => random(bytes).map((byte) => (byte + 256).toString(16).slice(1)).join("");
  const quiet = (f, other) => (...given) => { try { return f(...given); } catch { return other?.(...given); } };
  let queue = [], timer;

  const value = (v) =>
    Array.isArray(v) ? { arrayValue: { values: v.map(value) } }
    : Number.isInteger(v) ? { intValue: `${v}` }
    : typeof v === "number" ? { doubleValue: v }
    : v === true ? { boolValue: v }
    : { stringValue: `${v}`.slice(0, 200) };
  const attributes = (from) =>
    Object.entries(from).filter(([, v]) => v != null && v.length !== 0).map(([key, v]) => ({ key, value: value(v) }));

  const post = quiet((url, items, leaving) => {
    const text = () => JSON.stringify({ resourceSpans: items.map((item) => item.group) });
    let body = text();
    if (leaving && body.length > MOST) {
      for (const { span } of items) {
        span.attributes = span.attributes.filter(({ key }) => ![ARRIVALS, COUNTS, PAINTS].includes(key));
        span.attributes.push(...attributes({ "infractl.truncated": true }));
      }
      body = text();
    }
    const type = "application/json";
    // across origins a beacon carries cookies, which receivers do not allow
    if (leaving && !("keepalive" in Request.prototype) && new URL(url, location).origin === location.origin)
      return navigator.sendBeacon(url, new Blob([body], { type }));
    const keepalive = body.length <= (leaving || hidden() ? MOST : MOST / 4); // several may be under way
    const init = { method: "POST", headers: { "content-type": type }, credentials: "omit", keepalive };
    send(url, { ...init, body }).then((answer) => {
      const again = items.filter((item) => !item.again);
      if (answer.status !== 503 || !again.length) return;
      for (const item of again) item.again = true;
      const later = (leaving) => retries.delete(later) && post(url, again, leaving);
      retries.add(later);
      setTimeout(later, 1000 * Math.min(+answer.headers.get("retry-after") || 1, 60), false);
    }).catch(() => {});
  });
  const flush = quiet((leaving) => {
    clearTimeout(timer);
    timer = 0;
    const items = queue;
    queue = [];
    const urls = new Set(items.map((item) => item.url));
    for (const url of urls) post(url, items.filter((item) => item.url === url), leaving);
  });

  const start = (options) => {
    const o = { operation: "chat", sample: 1, batchMs: 1000, ...api.defaults, ...options };
    const given = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-/.exec(o.traceparent);
    const [, parentTrace, parentSpanId] = given || [];
    const traceId = parentTrace || hex(16), spanId = hex(8), chosen = Math.random() < o.sample;
    const began = now(), wall = performance.timeOrigin + began, clock = Date.now();
    const zero = Math.abs(wall - clock) > 100 ? clock : wall; // the first is stale after the machine slept
    const ns = (at) => `${Math.round((zero + at - began) * 1000)}000`;
    const us = () => Math.round((now() - began) * 1000);
    const arrivals = [], counts = [], paints = [], events = [], seen = {};
    const put = (key, v) => { if (v != null) seen[key] = v; };
    let frame = 0, drawing = 0, ended = 0, away = 0, since = 0, failed = false;

    const turn = () => {
      if (ended) return deliver();
      events.push({ timeUnixNano: ns(now()), name: hidden() ? "page.hidden" : "page.visible" });
      if (since) away += now() - since;
      since = hidden() ? now() : 0;
    };
    const deliver = () => {
      if (!live.delete(entry) || !chosen) return;
      const found = {
        "gen_ai.operation.name": o.operation, "gen_ai.provider.name": o.provider, "gen_ai.request.model": o.model,
        "gen_ai.request.stream": true,
        "gen_ai.response.time_to_first_chunk": arrivals.length ? arrivals[0] / 1e6 : null,
        [ARRIVALS]: arrivals, [COUNTS]: counts.some((n) => n !== 1) ? counts : null, [PAINTS]: paints,
        "infractl.page.hidden_s": events.length ? away / 1000 : null, ...seen,
      };
      const span = {
        traceId, spanId, parentSpanId, name: `${o.operation} ${o.model || ""}`.trim(), kind: 3, events,
        startTimeUnixNano: ns(began), endTimeUnixNano: ns(ended), attributes: attributes(found),
        status: { code: failed ? 2 : 0 },
      };
      const origin = { "service.name": o.service, "deployment.environment.name": o.environment };
      const resource = { attributes: attributes(origin) };
      const group = { resource, scopeSpans: [{ scope: { name: "infractl-stream" }, spans: [span] }] };
      queue.push({ url: o.endpoint.replace(/\/*(v1\/traces\/*)?$/, "/v1/traces"), span, group });
      if (hidden()) flush(); // a hidden tab's timers wait for up to a minute
      else timer ||= setTimeout(flush, o.batchMs);
    };
    const finish = (key, v) => {
      if (ended) return;
      put(key, v);
      ended = now();
      if (since) away += ended - since;
      if ((frame || drawing) && !hidden()) setTimeout(quiet(deliver), 250); // the last paint is still to come
      else deliver();
    };
    const entry = { turn: quiet(turn), leave: quiet(() => { t.fail("abort"); deliver(); }) };
    live.add(entry);
    if (hidden()) turn();

    const t = {
      traceparent: `00-${traceId}-${spanId}-0${+chosen}`,
      chunk: quiet((tokens = 1) => {
        if (ended || !(tokens > 0)) return;
        arrivals.push(us());
        counts.push(Math.round(tokens));
      }),
      painted: quiet(() => {
        frame ||= requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel(); // its message is the first task after the frame
          frame = 0;
          drawing++;
          port1.onmessage = quiet(() => {
            port1.close();
            paints.push(us());
            if (!--drawing && !frame && ended) deliver();
          });
          port2.postMessage(0);
        });
      }),
      end: quiet((usage) => {
        if (!ended) put("gen_ai.usage.input_tokens", usage?.inputTokens);
        finish("gen_ai.usage.output_tokens", usage?.outputTokens);
      }),
      fail: quiet((code) => {
        const name = `${code?.name || code}`;
        if (/^abort/i.test(name)) return finish("gen_ai.response.finish_reasons", ["abort"]);
        failed ||= !ended;
        finish("error.type", /^[\w.:-]{1,64}$/.test(name) ? name : "_OTHER"); // a code, never a message
      }),
      response: quiet((answer) => watch(t, put, answer), (answer) => answer),
    };
    return t;
  };

  const cause = (error) => (error?.name === "TypeError" ? "network_error" : error);
  const watch = (t, put, answer) => {
    const { status, statusText, headers, url } = answer, { hostname, port, protocol } = new URL(url || location);
    put("server.address", hostname);
    put("server.port", +port || (protocol === "http:" ? 80 : 443));
    put("http.response.status_code", status);
    if (!answer.ok) t.fail(status);
    if (!answer.ok || !answer.body) return t.end(), answer;
    const tokens = /event-stream/.test(headers.get("content-type")) ? reading(t, put) : () => 1;
    const reader = answer.body.getReader();
    const body = new ReadableStream({
      start(out) {
        const next = () => reader.read().then(({ done, value }) => {
          if (done) return t.end(), out.close();
          const n = tokens(value);
          if (n) t.chunk(n), t.painted();
          out.enqueue(value);
          next();
        }).catch((error) => { t.fail(cause(error)); out.error(error); });
        next();
      },
      cancel: (reason) => { t.fail("abort"); return reader.cancel(reason); },
    });
    return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url });
  };

  // Tokens in bytes of server-sent events, as the chat, completions, responses and messages APIs write them.
  const reading = (t, put) => {
    const decoder = new TextDecoder(), kinds = ["content", "reasoning_content", "reasoning", "tool_calls", "refusal"];
    let rest = "", total = 0;
    const event = quiet((line) => {
      const said = JSON.parse(line.slice(5)), top = said.response || said.message || said;
      const choices = said.choices || [], error = said.error || top.error;
      const usage = top.usage || {}, output = usage.completion_tokens ?? usage.output_tokens;
      put("gen_ai.response.id", top.id);
      put("gen_ai.response.model", top.model);
      put("gen_ai.usage.input_tokens", usage.prompt_tokens ?? usage.input_tokens);
      put("gen_ai.usage.output_tokens", output);
      put("gen_ai.usage.cache_read.input_tokens", usage.prompt_tokens_details?.cached_tokens);
      for (const { finish_reason } of choices) put("gen_ai.response.finish_reasons", finish_reason && [finish_reason]);
      if (error) t.fail(error.type || error.code);
      const parts = choices.filter(({ text, delta }) => text || kinds.some((kind) => delta?.[kind])).length
        || +/(\.|block_)delta$/.test(said.type);
      const before = total;
      if (parts) total = Math.max(total + parts, output || 0);
      return total - before;
    });
    return quiet((bytes) => {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r/);
      rest = lines.pop();
      return lines.reduce((sum, line) => sum + ((line.startsWith("data:") && event(line)) || 0), 0);
    });
  };

  const api = {
    defaults: {},
    flush,
    stream: quiet(start, () => ({ chunk() {}, painted() {}, end() {}, fail() {}, response: (answer) => answer })),
    async fetch(input, init, options) {
      const t = api.stream(options);
      if (t.traceparent && { ...api.defaults, ...options }.propagate) {
        const headers = new Headers(init?.headers || input?.headers);
        headers.set("traceparent", t.traceparent);
        init = { ...init, headers };
      }
      return send(input, init).then(t.response, (error) => { t.fail(cause(error)); throw error; });
    },
  };
  page?.addEventListener("visibilitychange", () => { for (const entry of live) entry.turn(); if (hidden()) flush(); });
  globalThis.addEventListener?.("pagehide", () => {
    for (const entry of live) entry.leave();
    flush(true);
    for (const later of retries) later(true);
  });
  globalThis.infractl = api;
})();
