import { Progress } from "../sim/progress.ts";
import { answerCases, fuzzAnswers } from "./answers.ts";
import { type Found, type Kind, keep } from "./cases.ts";
import { socketCases } from "./frames.ts";
import { fuzzRequests, requestCases } from "./requests.ts";

/**
 * `bun run fuzz --requests N --sockets N --answers N [--seed S]`: sends mutated requests to a gateway, mutated frames and
 * events over WebSockets, and mutated answers to its hosts' side. Each case that goes wrong is written into the corpus, which the tests run for ever.
 */
const seed = option("seed", 1);
/** Cases of one seed; all are in memory at once. */
const LOT = 2_500;
let wrong = 0;

await run("requests", option("requests", 0), requestCases, fuzzRequests);
await run("sockets", option("sockets", 0), socketCases, fuzzRequests);
await run("answers", option("answers", 0), answerCases, fuzzAnswers);
process.exit(wrong === 0 ? 0 : 1);

async function run<Case>(
  kind: Kind,
  count: number,
  drawn: (seed: number, count: number) => Case[],
  fuzz: (cases: readonly Case[], progress: (done: number) => void) => Promise<Found<Case>[]>,
): Promise<void> {
  if (count === 0) return;
  const startedMs = performance.now();
  const progress = new Progress(count, kind);
  let tried = 0;
  for (let lot = seed; tried < count; lot++) {
    const cases = drawn(lot, Math.min(LOT, count - tried));
    const before = tried;
    const found = await fuzz(cases, (done) => progress.at(before + done));
    tried += cases.length;
    wrong += found.length;
    for (const one of found) console.log(`${keep(kind, one.case)}: ${one.wrong}`);
  }
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(`${count} ${kind} from seed ${seed} on in ${seconds} s; ${wrong} cases went wrong so far`);
}

function option(name: string, otherwise: number): number {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? otherwise : Number(process.argv[at + 1]);
}
