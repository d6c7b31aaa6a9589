# OpenAI's client for Python, as it comes: a loop of tools over WebSocket.
import json, sys, time
from openai import OpenAI

base_url, api_key, model, _, history = sys.argv[1:6]
client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
tools = [{"type": "function", "name": "step", "strict": False, "parameters": {"type": "object", "properties": {"n": {"type": "number"}}}}]
items = [{"type": "message", "role": "user", "content": "Take all steps. " + "word " * (int(history) // 5)}]
began = time.monotonic()
calls, previous = 0, None
with client.responses.connect() as connection:
    while True:
        more = {} if previous is None else {"previous_response_id": previous}
        connection.send({"type": "response.create", "model": model, "tools": tools, "store": False, "input": items, **more})
        for event in connection:
            if event.type in ("error", "response.failed"):
                raise SystemExit(str(event))
            if event.type == "response.completed":
                response = event.response
                break
        made = [item for item in response.output if item.type == "function_call"]
        if not made:
            break
        items = []
        for call in made:
            calls += 1
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": f"step {calls} done"})
        previous = response.id
print(json.dumps({"calls": calls, "ms": round((time.monotonic() - began) * 1000)}))
