-- For wrk: every request is a call with an id of its own. The figures go out as one line of JSON.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"

-- By environment, since wrk gives its arguments to the state of the thread only, and not to that of `done`.
local body = os.getenv("BENCH_BODY")
local connections = tonumber(os.getenv("BENCH_CONNECTIONS"))
local texts = tonumber(os.getenv("BENCH_TEXTS"))
local id = 0

function request()
  id = id + 1
  return wrk.format(nil, nil, nil, string.format(body, id, id % texts))
end

-- wrk adds, for each slow request, those that a client at a fixed rate would have sent meanwhile. With one connection
-- that makes a pause of the machine outweigh all requests, so it is taken back: times are those of the requests made.
local function uncorrected(latency, expected)
  local values, counts, passed = {}, {}, {}
  for i = #latency, 1, -1 do
    local value, count = latency(i)
    local class = value % expected
    if value > expected then
      count = count - (passed[class] or 0)
    end
    if value >= 2 * expected then
      passed[class] = (passed[class] or 0) + count
    end
    values[i], counts[i] = value, count
  end
  return values, counts
end

-- As `classify` in figures.js makes it of the times themselves.
local function classes(values, counts)
  local ends, sums = {}, {}
  for i = 0, 13 do
    ends[#ends + 1], sums[#sums + 1] = 16 * 2 ^ i, 0
  end
  for i, value in ipairs(values) do
    local at = 1
    while at < #ends and value >= ends[at] do
      at = at + 1
    end
    sums[at] = sums[at] + counts[i]
  end
  return table.concat(sums, ",")
end

local function percentile(values, counts, rank)
  local seen = 0
  for i, value in ipairs(values) do
    seen = seen + counts[i]
    if seen >= rank then
      return value
    end
  end
end

function done(summary, latency)
  -- Whoever measures what the requests cost wants to know at once: what follows takes a while.
  io.write("ended\n")
  io.flush()
  local requests, errors = summary.requests, summary.errors
  local perConnection = math.floor(requests / connections)
  local values, counts = uncorrected(latency, math.floor(summary.duration / perConnection))
  local timed = errors.timeout
  for _, count in ipairs(counts) do
    timed = timed + count
  end
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local line = '{"rate":%f,"p50":%d,"p99":%d,"requests":%d,"timed":%d,"failed":%d,"classes":[%s]}\n'
  local p50 = percentile(values, counts, requests * 0.5) or 0
  local p99 = percentile(values, counts, requests * 0.99) or 0
  local rate = requests / summary.duration * 1000000
  io.write(string.format(line, rate, p50, p99, requests, timed, failed, classes(values, counts)))
end
