/** The fixed public message of every deployment code; a code without its own text shares one. (agent-lifecycle 3.15) */

const errors: Readonly<Record<string, string>> = {
  CONVERGENCE_DEADLINE_EXCEEDED: 'The version did not become ready in time',
  RUNTIME_AUTHENTICATION_FAILED: 'The model provider rejected the credential; correct it and deploy again',
  RUNTIME_CPU_STARVED: 'The runtime had too little CPU to finish its start-up checks',
  RUNTIME_MODEL_PROBE_TIMEOUT: 'The model did not answer the start-up check in time',
  RUNTIME_MODEL_PROBE_FAILED: 'The start-up check of the model failed',
  RUNTIME_LOGIN_FAILED: 'The sign-in at the model provider failed',
  RUNTIME_STARTUP_FAILED: 'The runtime could not start; correct the Configuration and deploy again',
  WORKSPACE_SETUP_REFUSED: 'The runtime refused the initial workspace files',
  REVISION_SUPERSEDED: 'A newer version took the place of this one',
  REVISION_STOPPED: 'The Agent was stopped before this version was activated',
  AGENT_GATEWAY_UNAVAILABLE: "The Agent's gateway could not be reached in time",
  AGENT_GATEWAY_UNAUTHORIZED: "The Agent's gateway refuses its own client",
  KUBERNETES_API_UNAVAILABLE: 'The Kubernetes API stayed unavailable',
  SANDBOX_ADMISSION_LIMIT_REACHED: 'The Sandbox gateway kept refusing requests',
  SANDBOX_SECRET_ENVIRONMENT_UNSUPPORTED: 'The Sandbox cannot deliver Secrets through the environment',
  SANDBOX_HARNESS_UNSUPPORTED: 'The Sandbox cannot run this Harness',
  CREDENTIAL_SOURCE_ENVIRONMENT_CONFLICT: 'Two credential sources use the same environment variable',
  CREDENTIAL_WITHDRAWN: 'The credential source was withdrawn from this version',
  CREDENTIAL_GATEWAY_MISMATCH: 'The Installation now uses another Credential Gateway',
  CREDENTIAL_SOURCE_UNAVAILABLE: 'A credential source is missing or has changed',
  HARNESS_AUTH_SOURCE_UNAVAILABLE: 'The source of the harness authentication is missing or has changed',
  SECRET_DRIVER_MISMATCH: 'The Installation now uses another Secret Driver',
  COMPUTE_DRIVER_MISMATCH: 'The Installation now uses another Compute Driver',
  HARNESS_DESCRIPTOR_MISMATCH: 'The Harness release of this version is no longer approved',
  SERVICE_ACCOUNT_BACKEND_MISMATCH: "The service account no longer matches the Agent's Backend",
};

const attempts: Readonly<Record<string, string>> = {
  RECONCILIATION_PENDING: 'Not finished yet; another pass is due',
  REVISION_INCOMPLETE: 'Waiting for the runtime to become ready',
  REVISION_UNSCHEDULABLE: 'Waiting for capacity in the cluster',
  WORKSPACE_NODE_PENDING: 'The runtime is ready; its workspace node has not connected yet',
  WORKSPACE_NODE_BINDING_PENDING: 'The runtime is ready; the gateway has not applied its workspace node yet',
  DEPENDENCY_UNAVAILABLE: 'A dependency failed; the work will be retried',
  AGENT_GATEWAY_UNAVAILABLE: 'The gateway cannot be reached yet; retried until the deadline',
  KUBERNETES_API_UNAVAILABLE: 'The Kubernetes API is unavailable; retried until the deadline',
  SANDBOX_ADMISSION_LIMIT_REACHED: 'The Sandbox gateway refuses requests for now; retried until the deadline',
  ACTIVE_REVISION_CHANGED: 'The selected version changed meanwhile; the work is repeated',
  LEASE_EXPIRED: 'The previous claim expired; the work will be resumed',
  ACTIVE_REVISION_RECOVERY: 'The claim expired after publication; the activation will be finished',
  REFUSED_CANDIDATE_STOP_PENDING: 'The version was refused and is being stopped first',
};

export const errorMessage = (code: string): string => errors[code] ?? 'The deployment failed; see the recorded code';

/** The message of an attempt; a recorded refusal is named. */
export const attemptMessage = (code: string, refusal: string | null): string => {
  const message = attempts[code] ?? attempts['RECONCILIATION_PENDING']!;
  return refusal === null ? message : `${message} (${refusal})`;
};
