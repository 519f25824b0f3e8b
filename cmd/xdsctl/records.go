package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/resource"
)

func head(event string) report.Head {
	return report.Head{Time: report.Time(time.Now()), Event: event}
}

// about begins what is printed of an event that answers the subscription. Members of a
// collection were asked for by no name.
func (sub *subscribed) about(ev client.Event[any]) report.About {
	a := report.About{Type: ev.Type, Name: ev.Name, Authority: report.AuthorityOf(ev.Name), Subscription: sub.Text, From: ev.Server}
	if asked := sub.Asked(); asked != ev.Name && !(sub.Collection && ev.Name != sub.name) {
		a.Asked = asked
	}
	return a
}

// record is what is printed of an event.
func record(ev client.Event[any], of report.About) report.Record {
	about := func(event string) report.About {
		of.Head = head(event)
		return of
	}
	switch ev.Kind {
	case client.EventUpdated:
		of.Stale = ev.Stale
		return report.Update{
			About: about(report.EventUpdate), Version: ev.Version, Server: ev.Server, Locator: ev.Locator,
			Resource: report.Resource{TypeURL: ev.Type, Message: message(ev), Raw: ev.Raw},
		}
	case client.EventDoesNotExist:
		return report.Absent{About: about(report.EventDoesNotExist), Reason: ev.Reason.String(), Instead: instead(ev)}
	case client.EventAmbientError, client.EventRecovered: // without an error it has cleared
		return report.Fault{About: about(report.EventAmbientError), Error: report.ErrorOf(ev.Err)}
	case client.EventSynced:
		of.Stale = ev.Stale
		return report.Synced{About: about(report.EventSynced)}
	default:
		return report.Fault{About: about(report.EventError), Error: report.ErrorOf(ev.Err)}
	}
}

// instead is what came in place of what the server did not answer in time; nil if nothing did.
func instead(ev client.Event[any]) *report.Instead {
	in := ev.Instead
	if in == nil {
		return nil
	}
	return &report.Instead{
		Time: report.Time(in.Time), Count: in.Count, Names: append([]string{}, in.Names...), Text: in.String(),
		Error: report.ErrorOf(in.Err),
	}
}

// message is the value of an update, nil if its type is not known.
func message(ev client.Event[any]) proto.Message {
	m, _ := ev.Value.(proto.Message)
	return m
}

// trace prints streams and answers, and notes which responses are in hand.
func (s *session) trace() *client.Trace {
	return &client.Trace{
		StreamUp: func(i client.StreamInfo) {
			s.output.print(report.Stream{Head: head(report.EventStreamUp), Server: i.Server, Type: i.Type})
		},
		StreamDown: func(i client.StreamInfo, err error) {
			s.handled(i.ID)
			s.output.print(report.Stream{Head: head(report.EventStreamDown), Server: i.Server, Type: i.Type, Error: s.streamError(i, err)})
		},
		Response: func(i client.ResponseInfo) {
			if !i.Ignored {
				s.received(i.Stream.ID)
			}
		},
		Handled: func(i client.HandledInfo) { s.handled(i.Stream.ID) },
		ACK:     func(i client.AnswerInfo) { s.output.print(answer(report.EventACK, i, nil)) },
		NACK:    func(i client.AnswerInfo) { s.output.print(answer(report.EventNACK, i, s.refusal(i))) },
	}
}

func answer(event string, i client.AnswerInfo, e *report.Error) report.Answer {
	return report.Answer{
		Head: head(event), Type: i.Type, Version: i.Version, Nonce: i.Nonce, Server: i.Stream.Server, Error: e,
	}
}

func (s *session) streamError(i client.StreamInfo, err error) *report.Error {
	if err == nil {
		return nil
	}
	of := ""
	if i.Type != "" {
		of = " of " + resourceType(i.Type)
	}
	return &report.Error{
		Kind:    string(client.ErrorStream),
		Message: fmt.Sprintf("xds: stream%s of server %q for node %q ended: %v", of, i.Server, s.boot.Node.GetId(), err),
		Cause:   err.Error(),
	}
}

func (s *session) refusal(i client.AnswerInfo) *report.Error {
	return &report.Error{
		Kind: string(client.ErrorRejected),
		Message: fmt.Sprintf("xds: %s response of server %q for node %q: rejected: %v",
			resourceType(i.Type), i.Stream.Server, s.boot.Node.GetId(), i.Err),
		Cause: i.Err.Error(),
	}
}

// resourceType is a type URL as messages show it.
func resourceType(typeURL string) string { return strings.TrimPrefix(typeURL, resource.TypePrefix) }

// dump is the state of everything that the client knows, and of the subscriptions that it
// does not list by their own names.
func (s *session) dump() report.Dump {
	d := report.Dump{Head: head(report.EventDump), Subscriptions: []report.State{}}
	for _, st := range s.client.Dump() {
		d.Subscriptions = append(d.Subscriptions, state(st))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []report.State
	for _, sub := range s.subs {
		if sub.err != nil || sub.HasDirectives() {
			own = append(own, sub.state)
		}
	}
	slices.SortFunc(own, func(a, b report.State) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	d.Subscriptions = append(d.Subscriptions, own...)
	return d
}

func state(st client.State) report.State {
	out := report.State{
		Type: st.Type, Name: st.Name, Authority: report.AuthorityOf(st.Name), Status: string(st.Status),
		Version: st.Version, Server: st.Server, Error: report.ErrorOf(st.Err), Redirect: st.Redirect, Stale: st.Stale,
	}
	if !st.Updated.IsZero() {
		updated := report.Time(st.Updated)
		out.Updated = &updated
	}
	return out
}
