/** What clients see of the native admin UI of an Agent. (agent-lifecycle 9.1, rest-contract 2.12) */

export const nativeAdminStatuses = ['available', 'disabled', 'stopped', 'unavailable', 'unsupported'] as const;

export interface NativeAdminView {
  readonly status: (typeof nativeAdminStatuses)[number];
  readonly activeRevisionId?: string;
  readonly host?: string;
  readonly origin?: string;
  /** What to open; with `available` only. */
  readonly url?: string;
}
