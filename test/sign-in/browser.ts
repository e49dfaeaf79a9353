/** A client that sends exactly the headers it is given, as browsers and their imitations do. */
export interface Answered {
  readonly status: number;
  readonly code: string | undefined;
  readonly message: string | undefined;
  readonly details: unknown;
  readonly data: unknown;
  readonly headers: Headers;
  readonly requestId: string;
}

type Sent = Readonly<Record<string, string>>;

export const browserOf =
  (origin: string) =>
  async (method: string, path: string, headers: Sent = {}, body?: unknown): Promise<Answered> => {
    const response = await fetch(origin + path, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { data, error, meta } = (await response.json()) as { data?: unknown; error?: { code: string; message: string; details?: unknown }; meta: { requestId: string } };
    return { status: response.status, code: error?.code, message: error?.message, details: error?.details, data, headers: response.headers, requestId: meta.requestId };
  };
