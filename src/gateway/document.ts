/** What the gateway reads from an Agent's native document: the Agent it announces, and how its start is asked to go. */

/** Evidence that the gateway is told to hold instead of becoming ready. */
export interface HeldStart {
  readonly code: string;
  readonly check: string;
  readonly cause?: { readonly kind: string; readonly detail?: string };
}

export interface GatewayDocument {
  /** The sole Agent of the roster, or `main`. */
  readonly agentId: string;
  /** How long the start takes before its outcome, in milliseconds. */
  readonly startupDelayMs: number;
  /** The gateway ends with this code instead of becoming ready. */
  readonly exitAtStartup?: number;
  readonly holdStartup?: HeldStart;
}

/** The document, or the sentence that says why this gateway cannot run it. */
export type DocumentReading = { readonly document: GatewayDocument } | { readonly problem: string };

const identifier = /^[A-Za-z0-9._~:@-]{1,64}$/;
const causeKinds = ['PROCESS_EXIT', 'PROBE_STATUS', 'INVALID_OUTPUT', 'WRAPPER_ERROR'];
const longestDelayMs = 600_000;

/**
 * Reads a native document. Its optional member `exuvia` is for rehearsing failures on a real child:
 *
 *     "exuvia": {
 *       "holdStartup": { "code": "AUTHENTICATION_FAILED", "check": "model-probe", "cause": { "kind": "PROBE_STATUS", "detail": "billing" } },
 *       "startupDelayMs": 1500,
 *       "exitAtStartup": 3
 *     }
 *
 * - `holdStartup`: the gateway stays alive and unready and reports this code as its `runtimeFailure`. Codes that end a
 *   deployment at once: AUTHENTICATION_FAILED, MODEL_PROBE_CPU_STARVED, MODEL_PROBE_TIMEOUT, MODEL_PROBE_FAILED,
 *   LOGIN_FAILED, UNAVAILABLE, INCOMPATIBLE_RESPONSE, WORKSPACE_SETUP_REFUSED; any other stays pending.
 *   `check` (default `startup`) and `cause` are optional.
 * - `startupDelayMs` (0 to 600000): the outcome of the start comes this much later.
 * - `exitAtStartup` (0 to 255): the gateway ends with this exit code and never becomes ready.
 *
 * Every member is optional and the object is closed. (compute-drivers 14.1, agent-lifecycle 3.8)
 */
export const readDocument = (value: unknown): DocumentReading => {
  const root = objectOf(value);
  if (root === undefined) return { problem: 'The native document must be an object' };
  const agentId = soleAgentOf(root['agents']) ?? 'main';
  const rehearsal = root['exuvia'];
  if (rehearsal === undefined) return { document: { agentId, startupDelayMs: 0 } };

  const members = closed(rehearsal, ['holdStartup', 'startupDelayMs', 'exitAtStartup']);
  if (members === undefined) return { problem: 'exuvia may hold only holdStartup, startupDelayMs and exitAtStartup' };
  const { startupDelayMs = 0, exitAtStartup, holdStartup } = members;
  if (!integerWithin(startupDelayMs, longestDelayMs)) return { problem: 'exuvia.startupDelayMs must be an integer from 0 to 600000' };
  if (exitAtStartup !== undefined && !integerWithin(exitAtStartup, 255)) return { problem: 'exuvia.exitAtStartup must be an integer from 0 to 255' };
  const held = holdStartup === undefined ? undefined : heldStart(holdStartup);
  if (held === 'malformed') return { problem: 'exuvia.holdStartup must be {code, check?, cause?: {kind, detail?}} of short identifiers' };

  return {
    document: {
      agentId,
      startupDelayMs,
      ...(exitAtStartup !== undefined && { exitAtStartup }),
      ...(held !== undefined && { holdStartup: held }),
    },
  };
};

const heldStart = (value: unknown): HeldStart | 'malformed' => {
  const members = closed(value, ['code', 'check', 'cause']);
  const { code, check = 'startup', cause } = members ?? {};
  if (!isIdentifier(code) || !isIdentifier(check)) return 'malformed';
  if (cause === undefined) return { code, check };
  const { kind, detail } = closed(cause, ['kind', 'detail']) ?? {};
  if (typeof kind !== 'string' || !causeKinds.includes(kind)) return 'malformed';
  if (detail === undefined) return { code, check, cause: { kind } };
  return isIdentifier(detail) ? { code, check, cause: { kind, detail } } : 'malformed';
};

const soleAgentOf = (agents: unknown): string | undefined => {
  const list = objectOf(agents)?.['list'];
  if (!Array.isArray(list) || list.length !== 1) return undefined;
  const id = objectOf(list[0])?.['id'];
  return isIdentifier(id) ? id : undefined;
};

const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;

const closed = (value: unknown, names: readonly string[]): Record<string, unknown> | undefined => {
  const members = objectOf(value);
  return members !== undefined && Object.keys(members).every((name) => names.includes(name)) ? members : undefined;
};

const isIdentifier = (value: unknown): value is string => typeof value === 'string' && identifier.test(value);

const integerWithin = (value: unknown, most: number): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most;
