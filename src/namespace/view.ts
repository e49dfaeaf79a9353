/** What readers see of a Namespace, and where they read it. (rest-contract 3.2) */
import type { PageRequest, Reading, Visibility } from '../runtime/reading.ts';

export interface NamespaceView {
  readonly id: string;
  readonly name: string;
  readonly status: 'provisioning' | 'ready' | 'failed' | 'deleting';
  readonly createdAt: string;
}

export interface NamespaceReads {
  byIds(ids: readonly string[]): Promise<Reading<NamespaceView>>;
  /** Visible Namespaces, in creation order, then id. */
  list(visible: Visibility, page?: PageRequest): Promise<Reading<NamespaceView>>;
}
