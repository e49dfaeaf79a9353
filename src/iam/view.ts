/** What callers see of policy and of service keys. (rest-contract 3.9, 3.10) */
import type { AccessBinding, Permission, Role, ServiceKey } from './messages.ts';

export interface RoleView {
  readonly id: string;
  readonly namespaceId: string;
  readonly name: string | undefined;
  readonly permissions: readonly Permission[];
}

export interface AccessBindingView {
  readonly id: string;
  readonly namespaceId: string;
  readonly subjectKind: AccessBinding['subjectKind'];
  readonly subjectId: string;
  readonly roleId: string;
  /** Kind and id of its one resource; undefined where it holds in the whole Namespace. */
  readonly resourceKind: string | undefined;
  readonly resourceId: string | undefined;
}

export interface ServicePrincipalView {
  readonly id: string;
  readonly namespaceId: string;
}

export interface IssuedServiceKey {
  readonly id: string;
  readonly servicePrincipalId: string;
  readonly namespaceId: string | undefined;
  readonly name: string;
  readonly expiresAt: string;
  /** The text of the key: in this one answer and nowhere else. */
  readonly key: string;
}

export interface RevokedServiceKey {
  readonly id: string;
  readonly revoked: true;
}

/** A Role of a Namespace; undefined for any other. */
export const roleView = ({ roleId, namespaceId, name, permissions }: Role): RoleView | undefined => (namespaceId === undefined ? undefined : { id: roleId, namespaceId, name, permissions });

/** A binding of a Namespace; undefined for any other. */
export const accessBindingView = ({ bindingId, namespaceId, subjectKind, subjectId, roleId, resourceKind, resourceId }: AccessBinding): AccessBindingView | undefined =>
  namespaceId === undefined ? undefined : { id: bindingId, namespaceId, subjectKind, subjectId, roleId, resourceKind, resourceId };

export const issuedServiceKey = ({ keyId, servicePrincipalId, namespaceId, name, expiresAt }: ServiceKey, key: string): IssuedServiceKey => ({ id: keyId, servicePrincipalId, namespaceId, name, expiresAt, key });
