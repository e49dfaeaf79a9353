/** What readers see of the Installation, and where they read it. (rest-contract 3.1) */
import type { Policy } from '../iam/policy.ts';
import type { Reading } from '../runtime/reading.ts';

export interface InstallationView {
  readonly id: string;
  readonly name: string;
  readonly defaultNamespaceId: string;
  readonly createdAt: string;
}

export const installationView = (born: NonNullable<Policy['installation']>): InstallationView => ({
  id: born.installationId,
  name: born.name,
  defaultNamespaceId: born.defaultNamespaceId,
  createdAt: born.createdAt,
});

export interface InstallationReads {
  /** The Installation of this control plane; no row before its bootstrap has been seen. */
  find(): Promise<Reading<InstallationView>>;
}
